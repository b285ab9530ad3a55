"""Whatever happens to nodes and pods: spreading says what it would say of a cluster seen for the first time."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_node, make_pod_info, make_selector, make_term
from tests.reference import topology_spread
from tests.reference.filters import Host

from bayplan.api.objects import Node, TopologySpreadConstraint
from bayplan.cache.cache import Cache
from bayplan.cache.listers import Listers
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import PodTopologySpreadArgs
from bayplan.framework.interface import CycleState
from bayplan.framework.status import Code
from bayplan.plugins.pod_topology_spread.pod_topology_spread import PodTopologySpread

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


class World:
    """A cache with its plugin, and a plain record of what is in it."""

    def __init__(self, shapes: list[dict[str, Any]]) -> None:
        self.cache = Cache()
        index = NodeIndex(self.cache.nodes)
        self.plugin = PodTopologySpread(PodTopologySpreadArgs(), index, Listers())
        self.incoming = [make_pod_info("incoming", **shape) for shape in shapes]
        self.states: list[CycleState] = [{} for _ in shapes]
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, tuple[PodInfo, str]] = {}

    def step(self, kind: str, *args: Any) -> None:
        if kind == "node":
            self.set_node(*args)
        elif kind == "no node" and self.cache.has_node(args[0]):
            self.cache.remove_node(args[0])
            del self.nodes[args[0]]
        elif kind == "pod":
            uid, node, form = args
            pod = make_pod_info(uid, uid=uid, node=node, **form)
            self.cache.set_pod(pod)
            self.pods[uid] = (pod, node)
        elif kind == "no pod":
            self.cache.remove_pod(args[0])
            self.pods.pop(args[0], None)
        elif kind == "crowd":
            for number in range(70):
                self.set_node(f"more{number}", {"labels": {"zone": "a"}, "taints": []})
        elif kind == "look":
            self.check(args[0])

    def set_node(self, name: str, form: dict[str, Any]) -> None:
        labels = form["labels"] | ({"kubernetes.io/hostname": name} if name != "n4" else {})
        node = self.nodes[name] = make_node(name, labels=labels, taints=form["taints"])
        self.cache.set_node(node)

    def check(self, which: int) -> None:
        table, pod = self.cache.nodes, self.incoming[which]
        rows = table.rows()
        on: dict[str, list[PodInfo]] = {}
        for each, node in self.pods.values():
            on.setdefault(node, []).append(each)
        hosts = [Host(self.nodes[table.names[row]], tuple(on.get(table.names[row], ()))) for row in rows.tolist()]
        expected = [topology_spread.verdict(pod, host, hosts) for host in hosts]
        for state in (self.states[which], CycleState()):
            self.check_filter(state, pod, rows, expected)
            self.check_score(state, pod, rows, hosts)

    def check_filter(self, state: CycleState, pod: PodInfo, rows: Any, expected: list[Any]) -> None:
        table = self.cache.nodes
        status = self.plugin.pre_filter(state, pod, table).status
        assert (status.code is Code.SKIP) == (not topology_spread.own(pod, "DoNotSchedule"))
        if status.code is Code.SKIP:
            return
        codes = self.plugin.filter(state, pod, table, rows)
        assert codes.dtype == np.int8
        assert codes.tolist() == [0 if each is None else each[0] for each in expected]
        rejected = np.flatnonzero(codes)
        reasons = self.plugin.reasons(state, pod, table, rows[rejected])
        for place, row in enumerate(rejected.tolist()):
            assert [reason.text for reason in reasons if reason.holds[place]] == expected[row][1]

    def check_score(self, state: CycleState, pod: PodInfo, rows: Any, hosts: list[Host]) -> None:
        table = self.cache.nodes
        for chosen in (slice(None), slice(None, None, 2)):
            feasible = rows[chosen]
            expected = topology_spread.scores(pod, hosts[chosen], hosts)
            status = self.plugin.pre_score(state, pod, table, feasible)
            assert (status.code is Code.SKIP) == (expected is None)
            if expected is not None and len(feasible):
                raw = self.plugin.score(state, pod, table, feasible)
                scores = self.plugin.normalize_score(state, pod, table, feasible, raw)
                assert scores.dtype == np.int64
                assert scores.tolist() == expected


@settings(max_examples=60, deadline=None)
@given(shapes=st.lists(INCOMING, min_size=2, max_size=2), steps=STEPS)
def test_what_is_kept_equals_a_count_from_scratch(shapes: list[dict[str, Any]], steps: list[tuple[Any, ...]]) -> None:
    world = World(shapes)
    for kind, *args in [*steps, ("look", 0), ("look", 1)]:
        world.step(kind, *args)


@settings(max_examples=30, deadline=None)
@given(first=INCOMING, second=INCOMING, steps=STEPS)
def test_pods_of_equal_signature_are_treated_alike(
    first: dict[str, Any], second: dict[str, Any], steps: list[tuple[Any, ...]]
) -> None:
    # Only labels differ, which matter to selectors alone.
    world = World([first, first | {"labels": second["labels"]}])
    for kind, *args in steps:
        world.step(kind, *args)
    one, other = world.incoming
    if world.plugin.sign_pod(one) == world.plugin.sign_pod(other):
        world.states[1] = world.states[0]
    world.check(0)
    world.check(1)
