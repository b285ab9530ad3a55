"""Nominated pods counted on all their nodes at once, against one node at a time as kube-scheduler does it."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.builders import make_node, make_pod, make_selector

from bayplan.api.objects import PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from bayplan.cache.cache import Cache
from bayplan.cache.pod_info import PodInfo
from bayplan.config.load import default_configuration
from bayplan.framework.traits import Reads
from bayplan.plugins.registry import build_frameworks
from bayplan.queue.nominator import Nominator
from bayplan.scheduler.cycle import FitError, Placement, SchedulingCycle

APPS = ("web", "db")
NODES = ("n0", "n1", "n2", "n3")
KEYS = ("zone", "kubernetes.io/hostname")
PRIORITY = 10


class FiltersNoNominated:
    """A filter that reads the cluster and cannot tell what nominated pods would change, so nodes are tried singly."""

    def __init__(self, plugin):
        self.name, self.traits = plugin.name, plugin.traits
        self.sign_pod, self.filter, self.reasons = plugin.sign_pod, plugin.filter, plugin.reasons


class World:
    """One cluster seen by two cycles: one counts nominated pods at once, one tries them node by node."""

    def __init__(self):
        self.cache = Cache()
        self.nominator = Nominator()
        self.framework, self.singly = (self.new_framework() for _ in range(2))
        self.singly.filters = [
            FiltersNoNominated(plugin) if plugin.traits.reads is Reads.CLUSTER else plugin
            for plugin in self.singly.filters
        ]
        self.at_once = SchedulingCycle(self.cache.nodes, self.nominator)
        self.one_by_one = SchedulingCycle(self.cache.nodes, self.nominator)
        self.serial = 0
        for number, name in enumerate(NODES):
            self.label(name, f"z{number % 2}")

    def new_framework(self):
        return build_frameworks(
            default_configuration(), self.cache.nodes, self.cache.listers, self.nominator, lambda: 0.0
        )["bayplan"]

    def label(self, name, zone):
        labels = {"kubernetes.io/hostname": name} | ({"zone": zone} if zone else {})
        self.cache.set_node(make_node(name, cpu="4", labels=labels))

    def pod(self, shape):
        app, spread, near, far, priority = shape
        self.serial += 1
        uid = f"p{self.serial}"
        return PodInfo(
            make_pod(
                uid,
                uid=uid,
                cpu="1",
                priority=priority,
                labels={"app": app},
                spread=[
                    TopologySpreadConstraint(
                        topology_key=key,
                        max_skew=skew,
                        min_domains=domains,
                        when_unsatisfiable="DoNotSchedule",
                        label_selector=make_selector(app=of),
                    )
                    for key, skew, domains, of in spread
                ],
                pod_affinity=required(near),
                pod_anti_affinity=required(far),
            )
        )

    def place(self, shape, node):
        self.cache.assume_pod(self.pod(shape), node)

    def nominate(self, shape, node):
        self.nominator.add(self.pod(shape), node)

    def arrive(self, index):
        """A nominated pod comes to its node, which may be noticed before its nomination ends."""
        nominated = [pod for node in NODES for pod in self.nominator.nominated_pods_for_node(node)]
        if nominated:
            pod = nominated[index % len(nominated)]
            if self.cache.node_of(pod.uid) is None:
                self.cache.assume_pod(pod, self.nominator.nominated_node(pod.uid))

    def give_up(self, index):
        nominated = [pod for node in NODES for pod in self.nominator.nominated_pods_for_node(node)]
        if nominated:
            self.nominator.delete(nominated[index % len(nominated)].uid)

    def leave(self, index):
        placed = self.cache.assumed_pods()
        if placed:
            self.cache.forget_pod(placed[index % len(placed)].uid)

    def look(self, shape):
        pod = self.pod(shape)
        found = self.at_once.schedule(pod, self.framework)
        wanted = self.one_by_one.schedule(pod, self.singly)
        assert told(found) == told(wanted)


def told(outcome):
    if isinstance(outcome, Placement):
        return outcome.node_name, outcome.feasible_nodes, outcome.score
    assert isinstance(outcome, FitError)
    return outcome.message, outcome.nominated_node_name, {pod.uid for pod in outcome.victims}


def required(terms):
    wanted = [PodAffinityTerm(topology_key=key, label_selector=make_selector(app=app)) for key, app in terms]
    return PodAffinity(required_during_scheduling_ignored_during_execution=wanted) if wanted else None


app = st.sampled_from(APPS)
key = st.sampled_from(KEYS)
spreads = st.lists(st.tuples(key, st.integers(1, 2), st.sampled_from([None, 1, 2, 3]), app), max_size=2)
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
    *[st.tuples(st.just("nominate"), shapes, node)] * 3,
    st.tuples(st.just("arrive"), st.integers(0, 5)),
    st.tuples(st.just("give_up"), st.integers(0, 5)),
    st.tuples(st.just("leave"), st.integers(0, 5)),
    st.tuples(st.just("label"), node, st.sampled_from(["z0", "z1", "z2", ""])),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(script=st.lists(steps, min_size=2, max_size=14), wanted=st.lists(shapes, min_size=1, max_size=3))
def test_counting_nominated_pods_at_once_decides_as_trying_them_node_by_node(script, wanted):
    world = World()
    for number, (step, *arguments) in enumerate(script):
        getattr(world, step)(*arguments)
        if number % 2:
            for shape in wanted:
                world.look(shape)
    for shape in wanted:
        world.look(shape)


def test_another_pod_nominated_to_the_same_node_is_counted_too():
    world = World()
    avoiding_web = ("db", [], [], [("kubernetes.io/hostname", "web")], 0)
    for name in NODES:
        world.nominate(("db", [], [], [], PRIORITY), name)
    world.look(avoiding_web)
    for name in NODES[1:]:
        world.nominate(("web", [], [], [], PRIORITY), name)
    world.look(avoiding_web)
    assert world.at_once.feasible_nodes(world.pod(avoiding_web), world.framework) == ["n0"]


def test_a_nominated_pod_that_arrived_is_counted_once():
    world = World()
    spread = ("web", [("kubernetes.io/hostname", 2, None, "web")], [], [], 0)
    world.nominate(("web", [], [], [], PRIORITY), "n0")
    world.look(spread)
    world.arrive(0)
    world.look(spread)
    assert world.at_once.feasible_nodes(world.pod(spread), world.framework) == list(NODES)
