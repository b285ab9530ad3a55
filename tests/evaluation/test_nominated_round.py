"""Nominated pods counted on all their nodes at once, against one node at a time as kube-scheduler does it."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.builders import make_node, make_pod_info, make_selector
from tests.plugins.inter_pod_affinity.affinity_scenes import required, term
from tests.plugins.preemption.worlds import World
from tests.plugins.scenes import spread

from bayplan.api.objects import LabelSelector
from bayplan.framework.status import Reads
from bayplan.scheduler.decision import FitError, Placement

APPS = ("web", "db")
ANYTHING = "anything"
NODES = ("n0", "n1", "n2", "n3")
KEYS = ("zone", "kubernetes.io/hostname")
PRIORITY = 10


class FiltersNoNominated:
    """A filter that reads the cluster and cannot tell what nominated pods would change, so nodes are tried singly."""

    def __init__(self, plugin):
        self.name, self.traits = plugin.name, plugin.traits
        self.sign_pod, self.filter, self.reasons = plugin.sign_pod, plugin.filter, plugin.reasons


class Both:
    """One cluster seen by two cycles: one counts nominated pods at once, one tries them node by node."""

    def __init__(self):
        self.at_once = World()
        self.one_by_one = self.at_once.afresh()
        self.one_by_one.framework.filters = [
            FiltersNoNominated(plugin) if plugin.traits.reads is Reads.CLUSTER else plugin
            for plugin in self.one_by_one.framework.filters
        ]
        self.cache, self.nominator = self.at_once.cache, self.at_once.nominator
        self.serial = 0
        for number, name in enumerate(NODES):
            self.label(name, f"z{number % 2}")

    def label(self, name, zone):
        labels = {"kubernetes.io/hostname": name} | ({"zone": zone} if zone else {})
        self.cache.set_node(make_node(name, cpu="4", labels=labels))

    def pod(self, shape, *, deleting=False):
        app, spreads, near, far, priority = shape
        self.serial += 1
        uid = f"p{self.serial}"
        return make_pod_info(
            uid,
            uid=uid,
            cpu="1",
            priority=priority,
            labels={"app": app},
            deleting=deleting,
            spread=[
                spread(key, selector(of), max_skew=skew, min_domains=domains) for key, skew, domains, of in spreads
            ],
            pod_affinity=apps(near),
            pod_anti_affinity=apps(far),
        )

    def place(self, shape, node):
        self.cache.assume_pod(self.pod(shape), node)

    def nominate(self, shape, node, deleting=False):
        self.nominator.add(self.pod(shape, deleting=deleting), node)

    def nominated(self, index):
        """One of the nominated pods, if there are any."""
        found = [pod for node in NODES for pod in self.nominator.nominated_pods_for_node(node)]
        return found[index % len(found)] if found else None

    def arrive(self, index):
        """A nominated pod comes to its node, which may be noticed before its nomination ends."""
        pod = self.nominated(index)
        if pod and self.cache.node_of(pod.uid) is None:
            self.cache.assume_pod(pod, self.nominator.nominated_node(pod.uid))

    def give_up(self, index):
        if pod := self.nominated(index):
            self.nominator.delete(pod.uid)

    def leave(self, index):
        if placed := self.cache.assumed_pods():
            self.cache.forget_pod(placed[index % len(placed)].uid)

    def look(self, shape):
        pod = self.pod(shape)
        assert told(self.at_once.schedule(pod)) == told(self.one_by_one.schedule(pod))

    def feasible_nodes(self, shape):
        return self.at_once.cycle.feasible_nodes(self.pod(shape), self.at_once.framework)


def told(outcome):
    if isinstance(outcome, Placement):
        return outcome.node_name, outcome.feasible_nodes, outcome.score
    assert isinstance(outcome, FitError)
    return outcome.message, outcome.post_filter.nominated_node_name, {pod.uid for pod in outcome.post_filter.victims}


def selector(of):
    return LabelSelector() if of == ANYTHING else make_selector(app=of)


def apps(terms):
    return required(*(term(key, make_selector(app=app)) for key, app in terms)) if terms else None


app = st.sampled_from(APPS)
selected = st.sampled_from((*APPS, ANYTHING))
key = st.sampled_from(KEYS)
spreads = st.lists(st.tuples(key, st.integers(1, 2), st.sampled_from([None, 1, 2, 3]), selected), max_size=2)
terms = st.lists(st.tuples(key, app), max_size=1)
none = st.just([])
shapes = st.one_of(
    st.tuples(app, spreads, none, none, st.sampled_from([0, PRIORITY])),
    st.tuples(app, none, terms, none, st.sampled_from([0, PRIORITY])),
    st.tuples(app, none, none, terms, st.sampled_from([0, PRIORITY])),
    st.tuples(app, spreads, terms, terms, st.just(0)),
)
node = st.sampled_from(NODES)
steps = st.one_of(
    st.tuples(st.just("place"), shapes, node),
    *[st.tuples(st.just("nominate"), shapes, node, st.booleans())] * 3,
    st.tuples(st.just("arrive"), st.integers(0, 5)),
    st.tuples(st.just("give_up"), st.integers(0, 5)),
    st.tuples(st.just("leave"), st.integers(0, 5)),
    st.tuples(st.just("label"), node, st.sampled_from(["z0", "z1", "z2", ""])),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(script=st.lists(steps, min_size=2, max_size=14), wanted=st.lists(shapes, min_size=1, max_size=3))
def test_counting_nominated_pods_at_once_decides_as_trying_them_node_by_node(script, wanted):
    world = Both()
    for number, (step, *arguments) in enumerate(script):
        getattr(world, step)(*arguments)
        if number % 2:
            for shape in wanted:
                world.look(shape)
    for shape in wanted:
        world.look(shape)


def test_another_pod_nominated_to_the_same_node_is_counted_too():
    world = Both()
    avoiding_web = ("db", [], [], [("kubernetes.io/hostname", "web")], 0)
    for name in NODES:
        world.nominate(("db", [], [], [], PRIORITY), name)
    world.look(avoiding_web)
    for name in NODES[1:]:
        world.nominate(("web", [], [], [], PRIORITY), name)
    world.look(avoiding_web)
    assert world.feasible_nodes(avoiding_web) == ["n0"]


def test_a_nominated_pod_that_arrived_is_counted_once():
    world = Both()
    even = ("web", [("kubernetes.io/hostname", 2, None, "web")], [], [], 0)
    world.nominate(("web", [], [], [], PRIORITY), "n0")
    world.look(even)
    world.arrive(0)
    world.look(even)
    assert world.feasible_nodes(even) == list(NODES)


@pytest.mark.parametrize("deleting", [False, True])
@pytest.mark.parametrize("of", ["web", ANYTHING])
def test_nominated_pods_count_for_an_empty_selector_and_while_they_end(of, deleting):
    world = Both()
    even = ("web", [("kubernetes.io/hostname", 1, None, of)], [], [], 0)
    world.nominate(("web", [], [], [], PRIORITY), "n0", deleting)
    world.look(even)
    assert world.feasible_nodes(even) == ["n1", "n2", "n3"]


def test_pods_on_nodes_do_not_count_for_an_empty_selector_beside_nominated_ones():
    world = Both()
    for name in NODES[1:]:
        world.place(("web", [], [], [], 0), name)
    world.nominate(("web", [], [], [], PRIORITY), "n0")
    even = ("web", [("kubernetes.io/hostname", 1, None, ANYTHING)], [], [], 0)
    world.look(even)
    assert world.feasible_nodes(even) == ["n1", "n2", "n3"]


def test_a_term_on_a_node_without_its_topology_leaves_nominated_pods_with_such_a_term_unheard():
    """No term can rule out a node, so kube-scheduler skips the filter, also with nominated pods."""
    world = Both()
    world.label("n0", "")
    keeps_web_away = ("db", [], [], [("zone", "web")], PRIORITY)
    world.place(keeps_web_away, "n0")
    world.nominate(keeps_web_away, "n1")
    web = ("web", [], [], [], 0)
    world.look(web)
    assert world.feasible_nodes(web) == list(NODES)
    world.place(keeps_web_away, "n3")
    world.look(web)
    assert world.feasible_nodes(web) == ["n0", "n2"]
