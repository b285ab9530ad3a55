"""The effective configuration: what every other part of bayplan reads, after defaults, merging and validation.

Field names are kube-scheduler's in snake case. All values are immutable and compare by content. Durations are
`timedelta`. The rules of fields stand in their annotations.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Final

from bayplan.api.objects import NodeAffinity, TopologySpreadConstraint
from bayplan.config.bayplan_args import BayplanArgs
from bayplan.config.connections import ClientConnection, Extender, LeaderElection
from bayplan.config.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates
from bayplan.config.labels import LABEL_NAME, RESOURCE_GROUP
from bayplan.config.settings import NOT_NEGATIVE_DURATION, OWN, PERCENTAGE, Int64, Rule, camel_case, each_is, within

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"
DEFAULT_SCHEDULER_NAME: Final = "bayplan"
"""The schedulerName of a single profile that names none; kube-scheduler would take `default-scheduler`."""
_NODES_TO_SCORE: Final = within(0, 100, "not in valid range [0-100]")
_RESOURCE_WEIGHT: Final = within(1, 100, "resource weight of {0.name} not in valid range (0, 100]", or_zero=True)
_BIND_TIMEOUT: Final = within(0, None, "invalid BindTimeoutSeconds, should not be a negative value")


class ScoringStrategyType(StrEnum):
    """How NodeResourcesFit ranks nodes."""

    LEAST_ALLOCATED = "LeastAllocated"
    MOST_ALLOCATED = "MostAllocated"
    REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"


class PodTopologySpreadDefaulting(StrEnum):
    """Where the spread constraints of pods without any come from."""

    SYSTEM = "System"
    LIST = "List"


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """A resource that counts in a score."""

    name: str = ""
    """Its name on nodes and pods, such as `cpu` or `nvidia.com/gpu`."""
    weight: Annotated[Int64, _RESOURCE_WEIGHT] = 1
    """Its share of the score, 1..100."""


@dataclass(frozen=True, slots=True)
class UtilizationShapePoint:
    """A point of a scoring function; between points the function is a straight line."""

    utilization: Annotated[int, PERCENTAGE] = 0
    """Per cent of the node's allocatable, 0..100, increasing from point to point."""
    score: Annotated[int, within(0, 10, "not in valid range [0, 10]")] = 0
    """0..10."""


DEFAULT_RESOURCES: Final = (ResourceSpec("cpu"), ResourceSpec("memory"))
DEFAULT_STORAGE_SHAPE: Final = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
"""VolumeBinding prefers nodes where most storage stays free."""


@dataclass(frozen=True, slots=True)
class ScoringStrategy:
    """How NodeResourcesFit turns requests and allocatable into a score."""

    type: Annotated[ScoringStrategyType, Rule(required=True)] = ScoringStrategyType.LEAST_ALLOCATED
    """Which function."""
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    """What counts; never empty. A name listed twice counts twice, as in kube-scheduler."""
    shape: tuple[UtilizationShapePoint, ...] = ()
    """`requestedToCapacityRatio.shape`: at least one point for RequestedToCapacityRatio, none otherwise."""


@dataclass(frozen=True, slots=True)
class WeightedStrategy:
    """One of several strategies that score together."""

    weight: Annotated[int, within(1, None, "must be greater than 0")] = 1
    """What its score is multiplied by, 1 or more."""
    strategy: ScoringStrategy = ScoringStrategy()
    """How it scores."""


@dataclass(frozen=True, slots=True)
class NodeResourcesFitArgs:
    """Arguments of NodeResourcesFit."""

    ignored_resources: Annotated[tuple[str, ...], each_is(LABEL_NAME)] = ()
    """Extended resources the filter does not look at."""
    ignored_resource_groups: Annotated[tuple[str, ...], each_is(RESOURCE_GROUP)] = ()
    """Prefixes (the part before `/`) of extended resources the filter does not look at."""
    scoring_strategy: ScoringStrategy = ScoringStrategy()
    """How nodes are scored."""
    scoring_strategies: Annotated[tuple[WeightedStrategy, ...], OWN] = ()
    """Strategies whose weighted scores are added up, in place of `scoring_strategy`; bayplan's own."""

    @property
    def spreads(self) -> bool:
        """Whether the emptiest nodes come first, and nothing else counts."""
        return not self.scoring_strategies and self.scoring_strategy.type is ScoringStrategyType.LEAST_ALLOCATED


class BalanceMeasure(StrEnum):
    """What NodeResourcesBalancedAllocation looks at."""

    IMPROVEMENT = "Improvement"
    """How much the pod changes the balance, as kube-scheduler."""
    RESULT = "Result"
    """How balanced the node is with the pod, as kube-scheduler 1.16."""


@dataclass(frozen=True, slots=True)
class NodeResourcesBalancedAllocationArgs:
    """Arguments of NodeResourcesBalancedAllocation."""

    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    """What should be used in equal parts; each once, weight 1."""
    measure: Annotated[BalanceMeasure, OWN] = BalanceMeasure.IMPROVEMENT
    """What it looks at; bayplan's own."""


@dataclass(frozen=True, slots=True)
class NodeAffinityArgs:
    """Arguments of NodeAffinity."""

    added_affinity: NodeAffinity | None = None
    """Affinity that every pod of the profile has besides its own."""


@dataclass(frozen=True, slots=True)
class InterPodAffinityArgs:
    """Arguments of InterPodAffinity."""

    hard_pod_affinity_weight: Annotated[int, PERCENTAGE] = 1
    """Score of existing pods whose required affinity matches the pod, 0..100."""
    ignore_preferred_terms_of_existing_pods: bool = False
    """Whether preferred terms of existing pods are left out when the pod itself has none."""


@dataclass(frozen=True, slots=True)
class PodTopologySpreadArgs:
    """Arguments of PodTopologySpread."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    """Constraints of pods that have none, without selectors; only with `LIST`."""
    defaulting_type: PodTopologySpreadDefaulting = PodTopologySpreadDefaulting.SYSTEM
    """Where the constraints of pods without any come from."""


@dataclass(frozen=True, slots=True)
class VolumeBindingArgs:
    """Arguments of VolumeBinding."""

    bind_timeout_seconds: Annotated[Int64, _BIND_TIMEOUT] = 600
    """How long volumes may take to be bound; 0 or more."""
    shape: tuple[UtilizationShapePoint, ...] = DEFAULT_STORAGE_SHAPE
    """The score of a node by how full its storage would be; at least one point."""


class DeviceChoice(StrEnum):
    """Which devices a claim gets where several will do."""

    FIRST_FIT = "FirstFit"
    """The first, as in kube-scheduler."""
    LEAST_LEFT_OVER = "LeastLeftOver"
    """The smallest, and parts of devices that are broken already."""


@dataclass(frozen=True, slots=True)
class DynamicResourcesArgs:
    """Arguments of DynamicResources."""

    filter_timeout: Annotated[timedelta, NOT_NEGATIVE_DURATION] = timedelta(seconds=10)
    """How long filtering one node may take; 0 is no limit."""
    binding_timeout: Annotated[timedelta, NOT_NEGATIVE_DURATION] = timedelta(seconds=600)
    """How long devices may take to be ready; at least 1 s."""
    device_choice: Annotated[DeviceChoice, OWN] = DeviceChoice.FIRST_FIT
    """Which devices a claim gets; bayplan's own, as is the next."""
    shape: Annotated[tuple[UtilizationShapePoint, ...], OWN] = ()
    """The score of a node by how many per cent of its devices would be taken; without points they do not score."""


@dataclass(frozen=True, slots=True)
class OpaqueArgs:
    """Arguments of a plugin from outside this project, as they stand in the file."""

    value: Mapping[str, Any]
    """The decoded `args` object."""


PluginArgs = (
    NodeResourcesFitArgs
    | NodeResourcesBalancedAllocationArgs
    | NodeAffinityArgs
    | InterPodAffinityArgs
    | PodTopologySpreadArgs
    | VolumeBindingArgs
    | DynamicResourcesArgs
    | BayplanArgs
    | OpaqueArgs
)


@dataclass(frozen=True, slots=True)
class PluginEntry:
    """A plugin in a list."""

    name: str
    """Its name; in `disabled` also `*` for all."""
    weight: int = 0
    """What its normalised score is multiplied by; 0 means not set, which counts as 1."""


@dataclass(frozen=True, slots=True)
class PluginSet:
    """What one extension point adds and removes."""

    enabled: tuple[PluginEntry, ...] = ()
    """In the order they run."""
    disabled: tuple[PluginEntry, ...] = ()
    """Kept after merging: they also keep `multi_point` plugins out of this extension point."""


@dataclass(frozen=True, slots=True)
class Plugins:
    """The plugin sets of a profile, already merged with the default plugins."""

    pre_enqueue: PluginSet = PluginSet()
    """Keep pods out of the queue."""
    queue_sort: PluginSet = PluginSet()
    """Order the queue; exactly one, the same in all profiles."""
    pre_filter: PluginSet = PluginSet()
    """Look at the pod before filtering."""
    filter: PluginSet = PluginSet()
    """Rule out nodes."""
    post_filter: PluginSet = PluginSet()
    """Make room when no node is left."""
    pre_score: PluginSet = PluginSet()
    """Look at the feasible nodes before scoring."""
    score: PluginSet = PluginSet()
    """Rank feasible nodes; the only set whose weights matter besides `multi_point`."""
    reserve: PluginSet = PluginSet()
    """Keep state in step with assumed pods."""
    permit: PluginSet = PluginSet()
    """Stop an assumed pod before it is bound."""
    pre_bind: PluginSet = PluginSet()
    """Write what must be there before the bind."""
    bind: PluginSet = PluginSet()
    """Bind; at least one."""
    post_bind: PluginSet = PluginSet()
    """Learn of a bind."""
    multi_point: PluginSet = PluginSet()
    """Enabled at every extension point the plugin extends."""


PLUGIN_SET_KEYS: Final[Mapping[str, str]] = {each.name: camel_case(each.name) for each in fields(Plugins)}
"""All attributes of `Plugins`, from attribute to key in the file."""

EXTENSION_POINTS: Final[Mapping[str, str]] = {k: v for k, v in PLUGIN_SET_KEYS.items() if k != "multi_point"}
"""The extension points, from attribute to key in the file; `multi_point` is none of them."""


@dataclass(frozen=True, slots=True)
class Profile:
    """How pods that name `scheduler_name` are scheduled."""

    scheduler_name: Annotated[str, Rule({"minLength": 1})] = DEFAULT_SCHEDULER_NAME
    """What `spec.schedulerName` of its pods is."""
    percentage_of_nodes_to_score: Annotated[int | None, _NODES_TO_SCORE] = None
    """0..100, overrides the global one; 0 is adaptive, None takes the global one."""
    plugins: Plugins = Plugins()
    """What runs."""
    plugin_config: Mapping[str, PluginArgs] = field(default_factory=dict)
    """Arguments by plugin name; every enabled plugin that takes arguments has an entry."""

    def with_args(self, plugin: str, args: PluginArgs) -> "Profile":
        """Return the profile with other arguments of a plugin."""
        return replace(self, plugin_config={**self.plugin_config, plugin: args})

    @property
    def fit(self) -> NodeResourcesFitArgs:
        """The arguments of NodeResourcesFit, by default where it is not enabled."""
        args = self.plugin_config.get("NodeResourcesFit")
        return args if isinstance(args, NodeResourcesFitArgs) else NodeResourcesFitArgs()


@dataclass(frozen=True, slots=True)
class SchedulerConfiguration:
    """Everything a configuration file can say, and the feature gates, which only the command line can."""

    parallelism: Annotated[int, within(1, None, "should be an integer value greater than zero")] = 16
    """Kept for kube-scheduler's files: bayplan looks at all nodes at once. At least 1."""
    leader_election: LeaderElection = field(default_factory=LeaderElection)
    """Which replica is at work."""
    client_connection: ClientConnection = field(default_factory=ClientConnection)
    """How the API server is reached."""
    enable_profiling: bool = True
    """Whether `/debug/cache` and `/debug/profile` are served."""
    enable_contention_profiling: bool = True
    """Kept for kube-scheduler's files; false by default when profiling is off."""
    percentage_of_nodes_to_score: Annotated[int | None, _NODES_TO_SCORE] = None
    """0..100; 0 is adaptive as in kube-scheduler, None scores all nodes."""
    pod_initial_backoff_seconds: Annotated[Int64, within(1, None, "must be greater than 0")] = 1
    """Wait after a pod's first failed attempt."""
    pod_max_backoff_seconds: Annotated[Int64, Rule({"minimum": 1})] = 10
    """Longest wait after a failed attempt."""
    profiles: tuple[Profile, ...] = (Profile(),)
    """At least one, with different names."""
    extenders: tuple[Extender, ...] = ()
    """In the order they are called."""
    delay_cache_until_active: bool = False
    """Kept for kube-scheduler's files. It has no effect: a standby always keeps its caches warm."""
    feature_gates: FeatureGates = DEFAULT_FEATURE_GATES
    """Which features of kube-scheduler are on."""
