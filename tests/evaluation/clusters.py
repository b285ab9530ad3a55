"""Random clusters, made so that things collide: few names, few labels, amounts that are zero, equal or absurd."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from tests.builders import make_container, make_node, make_pod, make_selector, make_term
from tests.plugins.inter_pod_affinity.affinity_scenes import required, term
from tests.plugins.scenes import spread

from bayplan.api.objects import (
    ContainerStatus,
    LabelSelector,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PreferredSchedulingTerm,
    ResourceRequirements,
    TopologySpreadConstraint,
)
from bayplan.cache.listers import Listers
from bayplan.cache.node_table import NodeTable
from bayplan.config.plugin_args import default_args
from bayplan.config.plugin_sets import DEFAULT_PLUGINS, IMPLEMENTED_PLUGINS, merge_plugins
from bayplan.config.types import (
    BalanceMeasure,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginEntry,
    Plugins,
    PluginSet,
    Profile,
    ResourceSpec,
    SchedulerConfiguration,
    ScoringStrategy,
    ScoringStrategyType,
    UtilizationShapePoint,
    WeightedStrategy,
)
from bayplan.framework.runtime import Framework
from bayplan.plugins.registry import build_frameworks

GPU = "example.com/gpu"
FPGA = "example.com/fpga"
PAGES = "hugepages-2Mi"
STORAGE = "ephemeral-storage"
NODE_NAMES = [f"n{i}" for i in range(6)]
ABSURD = "9e18"

SOFT_TAINTS = ["b:PreferNoSchedule", "c=x:PreferNoSchedule", "c=y:PreferNoSchedule"]
TAINTS = [
    *SOFT_TAINTS,
    "a=1:NoSchedule",
    "a=2:NoExecute",
    "b:NoSchedule",
    "d:Unknown",
]
TOLERATIONS = ["a=1:NoSchedule", "a", "a=2:", "b:PreferNoSchedule", "b:", ":", ":NoExecute", "c=y:"]
CORDON = "node.kubernetes.io/unschedulable:NoSchedule"
IMAGES = {"reg:5000/base:latest": 3 * 2**30, "app:1": 700 * 2**20, "app:latest": 2**30, "side:1": 10 * 2**20}
POD_IMAGES = ["reg:5000/base", "app:1", "app", "", "side:1", "unknown:1"]
PORTS: list[Any] = [80, 443, ("", "UDP", 80), ("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), ("::", "TCP", 80)]
EXPRESSIONS = [
    "zone In a,b",
    "zone NotIn a",
    "zone In b",
    "disk Exists",
    "disk DoesNotExist",
    "size Gt 3",
    "size Lt 5",
    "kubernetes.io/hostname In n1,n2",
    "zone Wrong a",
    "size Gt x",
]
NAME_FIELDS = ["metadata.name In n1", "metadata.name In n2", "metadata.name NotIn n3", "metadata.name In n1,n4"]

_few = st.sampled_from


def build_framework(profile: Profile, nodes: NodeTable, listers: Listers | None = None) -> Framework:
    """The framework of one profile over a table."""
    return build_frameworks(SchedulerConfiguration(profiles=(profile,)), nodes, listers)[profile.scheduler_name]


def _some(values: Sequence[Any], limit: int = 2) -> st.SearchStrategy[list[Any]]:
    return st.one_of(st.just([]), st.lists(_few(values), max_size=limit, unique_by=repr))


def _sometimes(strategy: st.SearchStrategy[Any], otherwise: Any = None) -> st.SearchStrategy[Any]:
    return st.one_of(st.just(otherwise), st.just(otherwise), strategy)


@st.composite
def node_forms(draw: st.DrawFn) -> dict[str, Any]:
    """Everything about a node but its name, as arguments of `node_of`."""
    labels = {}
    for key, values in {"zone": ["a", "b"], "disk": ["ssd", ""], "size": ["1", "4", "9", "big"]}.items():
        if (value := draw(_few([*values, None]))) is not None:
            labels[key] = value
    extras = {GPU: [None, None, "0", "1", "8"], PAGES: [None, "64Mi"], STORAGE: [None, "10Gi"]}
    return {
        "cpu": draw(_few([*["4", "8", "3999m"] * 6, "1", "0", None, ABSURD])),
        "memory": draw(_few([*["32Gi", "16Gi", "33333333333"] * 6, "1Gi", "0", None, ABSURD])),
        "pods": draw(_few([*[110] * 9, 2, 3, 4, 1, 0])),
        "allocatable": {name: amount for name, each in extras.items() if (amount := draw(_few(each))) is not None},
        "labels": labels,
        "taints": draw(st.one_of(st.just([]), _some(SOFT_TAINTS, 3), _some(SOFT_TAINTS, 3), _some(TAINTS, 3))),
        "unschedulable": draw(_few([False] * 11 + [True])),
        "images": {image: IMAGES[image] + draw(_few([0, 2**28])) for image in draw(_some([*IMAGES], 3))},
    }


def node_of(form: dict[str, Any], name: str) -> Node:
    """The node of that form and name."""
    return make_node(name, uid=name, **form | {"labels": form["labels"] | {"kubernetes.io/hostname": name}})


@st.composite
def terms(draw: st.DrawFn) -> NodeSelectorTerm:
    """A node selector term, possibly empty or invalid."""
    return make_term(*draw(_some(EXPRESSIONS)), fields=draw(_sometimes(_some(NAME_FIELDS), [])))


def requests() -> st.SearchStrategy[dict[str, str]]:
    """What a container asks for, with amounts that are zero, absurd, or of resources few nodes have."""
    amounts = {
        "cpu": ["0", "1.5m", ABSURD],
        "memory": ["0", "1"],
        GPU: ["1", "2", "0"],
        FPGA: ["1"],
        PAGES: ["32Mi"],
        STORAGE: ["1Gi"],
        "untracked": ["1"],
    }
    plain = [("cpu", "1"), ("memory", "1Gi"), ("cpu", "250m"), ("memory", "8Gi")]
    pairs = [*plain * 15, *((name, amount) for name, all_ in amounts.items() for amount in all_)]
    return st.lists(_few(pairs), max_size=3).map(dict)


WISHES = [make_term(text) for text in ("zone In a", "disk Exists", "size Gt 3", "zone NotIn b", "size Gt x")]
WISHES += [make_term(), make_term(fields=["metadata.name In n1"])]
PINS = [make_term(fields=[f"metadata.name In n{i}"]) for i in range(4)]
SELECTORS = [{"zone": "a"}, {"zone": "b", "disk": "ssd"}, {"none": "x"}]
UNSUPPORTED = ["soft", "spread", "anti-affinity"]


def _spread_constraints() -> st.SearchStrategy[TopologySpreadConstraint]:
    return st.builds(
        TopologySpreadConstraint,
        max_skew=_few([1, 2, 5]),
        topology_key=_few(["zone", "zone", "disk", "kubernetes.io/hostname"]),
        when_unsatisfiable=_few(["DoNotSchedule", "ScheduleAnyway", "ScheduleAnyway"]),
        # The pods here have no labels.
        label_selector=_few([make_selector("app DoesNotExist"), make_selector("app DoesNotExist"), LabelSelector()]),
        min_domains=_few([None, 3]),
        node_taints_policy=_few([None, "Honor"]),
    )


FEATURES: dict[str, st.SearchStrategy[Any]] = {
    "preferred": st.lists(st.tuples(_few([7, 1, 100, 0]), _few(WISHES)), min_size=1, max_size=3),
    "tolerations": _some([*TOLERATIONS, CORDON], 3),
    "init_containers": st.builds(
        lambda requests, policy, image, ports: [
            make_container("i", requests=requests, restart_policy=policy, image=image, host_ports=ports)
        ],
        requests(),
        _few(["Always", None]),
        _few(POD_IMAGES),
        _some(PORTS, 1),
    ),
    "overhead": st.just({"cpu": "250m"}),
    "pod_level": _few([{"cpu": "2", "memory": "16Gi"}, {PAGES: "32Mi"}]),
    "node_selector": _few(SELECTORS),
    "spread": st.lists(_spread_constraints(), min_size=1, max_size=3),
    "node_affinity": st.one_of(st.lists(terms(), max_size=2), st.lists(_few(PINS), min_size=1, max_size=3)),
}
"""What a pod may have beyond containers, as arguments of `make_pod`."""


@st.composite
def shapes(draw: st.DrawFn) -> dict[str, Any]:
    """Everything about a pod but its identity, as arguments of `make_pod`: plain, or with a few features at once."""
    ports = draw(_some(PORTS))
    containers = [make_container("c0", requests=draw(requests()), image=draw(_few(POD_IMAGES)), host_ports=ports)]
    if draw(_few([False, False, True])):
        containers.append(make_container("c1", requests=draw(requests()), image=draw(_few(POD_IMAGES))))
    shape: dict[str, Any] = {"containers": containers}
    for feature in draw(st.lists(_few(list(FEATURES)), max_size=2, unique=True)):
        shape[feature] = draw(FEATURES[feature])
    rare = draw(_few(range(20)))
    if rare == 7:
        shape["node"] = draw(_few(["n1", "nowhere"]))
    elif rare == 13:
        shape |= _unsupported(draw(_few(UNSUPPORTED)))
    return shape


@st.composite
def similar_shapes(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Three shapes; the second, and often the third, differs from the first in one feature only."""
    first = draw(shapes())
    others = []
    for alike in (True, draw(st.booleans())):
        feature = draw(_few(list(FEATURES)))
        others.append(first | {feature: draw(FEATURES[feature])} if alike else draw(shapes()))
    return [first, *others]


def _unsupported(rule: str) -> dict[str, Any]:
    if rule == "anti-affinity":
        return {"pod_anti_affinity": required(term(selector=LabelSelector()))}
    policy = "DoNotSchedule" if rule == "spread" else "ScheduleAnyway"
    return {"spread": [spread(selector=None, when_unsatisfiable=policy)]}


def pod_of(shape: dict[str, Any], uid: str, *, node: str | None = None, actual_cpu: str | None = None) -> Pod:
    """A pod of that shape; on `node` if given, there with the CPU an in-place resize has actuated if given."""
    if node is not None:
        shape = shape | {"node": node}
    if actual_cpu is not None:
        resources = ResourceRequirements(requests={"cpu": actual_cpu})
        shape = shape | {"container_statuses": [ContainerStatus(name="c0", resources=resources)]}
    return make_pod(uid, uid=uid, **shape)


_SHAPES = [
    ((0, 0), (100, 10)),
    ((0, 10), (100, 0)),
    ((20, 3), (55, 10), (90, 1)),
    ((50, 7),),
]


SCORED = ["ImageLocality", "TaintToleration", "NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation"]
OPTIONAL = [*SCORED, "NodePorts", "NodeName", "NodeUnschedulable"]


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """A profile with other plugins, weights, strategies, ignored resources and added affinity."""
    names = ["cpu", "memory", GPU, STORAGE, PAGES, "pods", "cpu"]
    resources = tuple(
        ResourceSpec(name, draw(_few([1, 3, 100]))) for name in draw(st.lists(_few(names), min_size=1, max_size=4))
    )
    kind = draw(_few(list(ScoringStrategyType)))
    ratio = kind is ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO
    points = tuple(UtilizationShapePoint(*point) for point in draw(_few(_SHAPES))) if ratio else ()
    balanced = draw(_few([("cpu", "memory"), ("cpu", "memory", GPU), ("cpu", "memory", STORAGE, PAGES), (GPU,)]))
    added = draw(_sometimes(_added_affinity()))
    chosen = ScoringStrategy(kind, resources, points)
    several = (WeightedStrategy(draw(_few([1, 7])), chosen), WeightedStrategy(2, ScoringStrategy()))
    config = {
        "NodeResourcesFit": NodeResourcesFitArgs(
            ignored_resources=draw(_few([(), (), (FPGA,), (PAGES,)])),
            ignored_resource_groups=draw(_few([(), (), (), ("example.com",)])),
            scoring_strategy=draw(_few([ScoringStrategy(), chosen])),
            scoring_strategies=draw(_few([(), (), (), several])),
        ),
        "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs(
            tuple(ResourceSpec(name) for name in balanced), draw(_few([*BalanceMeasure, BalanceMeasure.IMPROVEMENT]))
        ),
        "NodeAffinity": NodeAffinityArgs(added),
    }
    # Without plugins that make others be asked again, each must hold its own.
    left_out = draw(st.one_of(_few([[], ["ImageLocality"]]), st.lists(_few(OPTIONAL), max_size=5, unique=True)))
    weights = draw(st.lists(st.tuples(_few(SCORED), _few([1, 5, 50])), max_size=2, unique_by=lambda pair: pair[0]))
    plugins = merge_plugins(
        DEFAULT_PLUGINS,
        Plugins(
            multi_point=PluginSet(disabled=tuple(PluginEntry(name) for name in (*left_out, "DefaultPreemption"))),
            score=PluginSet(enabled=tuple(PluginEntry(*pair) for pair in weights if pair[0] not in left_out)),
        ),
    )
    return Profile(plugins=plugins, plugin_config=config)


def default_profile() -> Profile:
    """The default plugins with their default arguments."""
    args = {name: args for name in IMPLEMENTED_PLUGINS if (args := default_args(name)) is not None}
    return Profile(plugins=DEFAULT_PLUGINS, plugin_config=args)


@st.composite
def _added_affinity(draw: st.DrawFn) -> NodeAffinity:
    valid = [expression for expression in EXPRESSIONS if expression not in ("zone Wrong a", "size Gt x")]
    term = make_term(draw(_few(valid)))
    required = NodeSelector(node_selector_terms=[term]) if draw(st.booleans()) else None
    preferred = [PreferredSchedulingTerm(weight=5, preference=term)] if draw(st.booleans()) else None
    return NodeAffinity(required, preferred)
