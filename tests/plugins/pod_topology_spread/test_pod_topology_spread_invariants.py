"""Whatever happens to nodes and pods: spreading says what it would say of a cluster seen for the first time."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_node, make_pod, make_selector, make_term
from tests.plugins.pod_topology_spread.spreading import Spreading
from tests.reference import topology_spread

from bayplan.api.objects import TopologySpreadConstraint
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import CycleState
from bayplan.framework.status import Code

few = st.sampled_from

SELECTORS = [
    None,
    make_selector(),
    make_selector(app="web"),
    make_selector("app NotIn web"),
    make_selector("rev Exists"),
]

CONSTRAINTS = st.builds(
    TopologySpreadConstraint,
    max_skew=few([1, 1, 2, 5]),
    topology_key=few(["zone", "zone", "rack", "kubernetes.io/hostname", "nobody-has"]),
    when_unsatisfiable=few(["DoNotSchedule", "ScheduleAnyway"]),
    label_selector=few([*SELECTORS, SELECTORS[2], SELECTORS[2]]),
    min_domains=few([None, None, 1, 2, 4]),
    node_affinity_policy=few([None, "Honor", "Ignore"]),
    node_taints_policy=few([None, "Honor", "Ignore"]),
    match_label_keys=few([None, None, ["rev"], ["rev", "missing"]]),
)

INCOMING = st.fixed_dictionaries(
    {
        "spread": st.lists(CONSTRAINTS, min_size=1, max_size=4),
        "labels": few([None, {"app": "web"}, {"app": "web", "rev": "1"}, {"app": "db", "rev": "2"}]),
        "node_selector": few([None, None, {"disk": "ssd"}]),
        "node_affinity": few([None, None, [make_term("zone In a,b")], []]),
        "tolerations": few([[], [], ["k:NoSchedule"]]),
    }
)

NODES = st.fixed_dictionaries(
    {
        "labels": st.fixed_dictionaries(
            {}, optional={"zone": few(["a", "b", "c", ""]), "rack": few(["1", "2"]), "disk": few(["ssd", "hdd"])}
        ),
        "taints": few([[], [], ["k:NoSchedule"], ["k:PreferNoSchedule"], ["x:NoExecute"]]),
    }
)
PODS = st.fixed_dictionaries(
    {
        "labels": few([None, {"app": "web"}, {"app": "web", "rev": "1"}, {"app": "db", "rev": "2"}]),
        "namespace": few(["default", "default", "other"]),
        "deleting": few([False, False, False, True]),
    }
)
NAMES = few([f"n{i}" for i in range(5)])
UIDS = few([f"p{i}" for i in range(12)])

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("node"), NAMES, NODES),
        st.tuples(st.just("pod"), UIDS, NAMES, PODS),
        st.tuples(st.just("pod"), UIDS, NAMES, PODS),
        st.tuples(st.just("no node"), NAMES),
        st.tuples(st.just("no pod"), UIDS),
        st.tuples(st.just("crowd")),
        st.tuples(st.just("look"), st.integers(0, 1)),
        st.tuples(st.just("look"), st.integers(0, 1)),
    ),
    max_size=30,
)


class World(Spreading):
    """A cluster that changes, with pods asked about again and again, as in an evaluation."""

    def __init__(self, shapes: list[dict[str, Any]]) -> None:
        super().__init__()
        self.incoming = [make_pod("incoming", uid="incoming", **shape) for shape in shapes]
        self.states = [CycleState() for _ in shapes]

    def step(self, *step: Any) -> None:
        match step:
            case ("node", name, form):
                self.set_node(name, **form)
            case ("no node", name) if self.cache.has_node(name):
                self.cache.remove_node(name)
            case ("pod", uid, node, form):
                self.add(make_pod(uid, uid=uid, node=node, **form))
            case ("no pod", uid):
                self.cache.remove_pod(uid)
            case ("crowd",):
                for number in range(70):
                    self.set_node(f"more{number}", {"zone": "a"})
            case ("look", which):
                self.check(which)

    def set_node(self, name: str, labels: dict[str, str], taints: Sequence[str] = ()) -> None:
        hostname = {"kubernetes.io/hostname": name} if name != "n4" else {}
        self.add(make_node(name, labels=labels | hostname, taints=taints))

    def check(self, which: int) -> None:
        """Compare what the plugin says of a pod, with what it kept and anew, with the reference."""
        pod, hosts = self.incoming[which], self.hosts()
        info = PodInfo(pod)
        rejected = {host.name: verdict for host in hosts if (verdict := topology_spread.verdict(info, host, hosts))}
        assert (self.pre_filter(pod) is Code.SKIP) == (not topology_spread.own(info, "DoNotSchedule"))
        for state in (self.states[which], CycleState()):
            assert self.rejected(pod, state) == rejected
            for feasible in (slice(None), slice(None, None, 2)):
                ranked = self.ranked(pod, state, feasible)
                expected = topology_spread.scores(info, hosts[feasible], hosts)
                assert (None if ranked is None else list(ranked.values())) == expected


@settings(max_examples=60, deadline=None)
@given(shapes=st.lists(INCOMING, min_size=2, max_size=2), steps=STEPS)
def test_what_is_kept_equals_a_count_from_scratch(shapes: list[dict[str, Any]], steps: list[tuple[Any, ...]]) -> None:
    world = World(shapes)
    for step in [*steps, ("look", 0), ("look", 1)]:
        world.step(*step)


@settings(max_examples=30, deadline=None)
@given(first=INCOMING, second=INCOMING, steps=STEPS)
def test_pods_of_equal_signature_are_treated_alike(
    first: dict[str, Any], second: dict[str, Any], steps: list[tuple[Any, ...]]
) -> None:
    # Only labels differ, which matter to selectors alone.
    world = World([first, first | {"labels": second["labels"]}])
    for step in steps:
        world.step(*step)
    one, other = map(PodInfo, world.incoming)
    if world.plugin.sign_pod(one) == world.plugin.sign_pod(other):
        world.states[1] = world.states[0]
    world.check(0)
    world.check(1)
