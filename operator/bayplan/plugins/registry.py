"""The plugins of this version by name, and the frameworks a configuration builds of them."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from bayplan.api.workload_objects import Namespace, PodDisruptionBudget
from bayplan.cache.cache import Cache
from bayplan.cache.listers import Listers
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.config.connections import Extender
from bayplan.config.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates
from bayplan.config.plugin_args import default_args
from bayplan.config.plugin_sets import expand_profiles, leave_to_extenders
from bayplan.config.types import (
    BalanceMeasure,
    PluginEntry,
    Profile,
    SchedulerConfiguration,
)
from bayplan.framework.interface import Plugin
from bayplan.framework.nominator import Nominator
from bayplan.framework.plugin_calls import PluginCalls
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Afterwards
from bayplan.framework.waiting_pods import WaitingPods
from bayplan.groups.pod_groups import PodGroups
from bayplan.metrics.table import Metrics
from bayplan.plugins.default_binder import DefaultBinder
from bayplan.plugins.dynamic_resources.claim_cache import ClaimCache
from bayplan.plugins.dynamic_resources.dynamic_resources import DynamicResources
from bayplan.plugins.expected_duration import ExpectedDuration
from bayplan.plugins.extended_resources import ExtendedResources
from bayplan.plugins.image_locality import ImageLocality
from bayplan.plugins.inter_pod_affinity.inter_pod_affinity import InterPodAffinity
from bayplan.plugins.node_affinity import NodeAffinity
from bayplan.plugins.node_declared_features import NodeDeclaredFeatures
from bayplan.plugins.node_headroom import NodeHeadroom
from bayplan.plugins.node_name import NodeName
from bayplan.plugins.node_ports import NodePorts
from bayplan.plugins.node_resources.device_amounts import DeviceAmounts
from bayplan.plugins.node_resources.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
    ResultingBalance,
)
from bayplan.plugins.node_resources.node_resources_fit import NodeResourcesFit
from bayplan.plugins.node_resources.node_resources_fragmentation import NodeResourcesFragmentation
from bayplan.plugins.node_resources.node_resources_least_remainder import NodeResourcesLeastRemainder
from bayplan.plugins.node_resources.scarce_resource_avoidance import ScarceResourceAvoidance
from bayplan.plugins.node_resources.topology_most_allocated import TopologyMostAllocated
from bayplan.plugins.node_unschedulable import NodeUnschedulable
from bayplan.plugins.node_volume_limits.node_volume_limits import NodeVolumeLimits
from bayplan.plugins.out_of_tree import extends, load_out_of_tree
from bayplan.plugins.pod_topology_spread.pod_topology_spread import PodTopologySpread
from bayplan.plugins.preemption.default_preemption import DefaultPreemption
from bayplan.plugins.priority_sort import PrioritySort
from bayplan.plugins.scheduling_gates import SchedulingGates
from bayplan.plugins.taint_toleration import TaintToleration
from bayplan.plugins.topology_placement_generator import TopologyPlacementGenerator
from bayplan.plugins.volume_binding.volume_binding import VolumeBinding
from bayplan.plugins.volume_restrictions import VolumeRestrictions
from bayplan.plugins.volume_zone import VolumeZone


@dataclass(frozen=True, slots=True)
class Handle:
    """What plugins may look at besides the pod and the rows they are asked about."""

    nodes: NodeTable
    index: NodeIndex
    listers: Listers
    nominator: Nominator = field(default_factory=Nominator)
    waiting_pods: WaitingPods = field(default_factory=WaitingPods)
    """The pods that Permit plugins have wait, to be allowed or rejected."""
    afterwards: Afterwards = lambda exchange: None
    """Who performs what plugins write while no pod is bound."""
    clock: Callable[[], float] = time.time
    """Seconds since the epoch."""
    gates: FeatureGates = DEFAULT_FEATURE_GATES
    """Which features of kube-scheduler are on."""
    groups: PodGroups = field(default_factory=lambda: PodGroups(Cache()))
    """The pod groups."""
    calls: PluginCalls = field(default_factory=lambda: PluginCalls(""))
    """Receives what the profile's plugins count."""


def _device_amounts(handle: Handle) -> DeviceAmounts:
    return DeviceAmounts(handle.listers, handle.nodes, handle.index)


_MADE_BY: Final[Mapping[type[Plugin], Callable[[Any, Handle], Plugin]]] = {
    SchedulingGates: lambda args, handle: SchedulingGates(),
    PrioritySort: lambda args, handle: PrioritySort(),
    NodeUnschedulable: lambda args, handle: NodeUnschedulable(handle.index),
    NodeName: lambda args, handle: NodeName(),
    TaintToleration: lambda args, handle: TaintToleration(
        handle.index, compares=handle.gates.enabled("TaintTolerationComparisonOperators")
    ),
    NodeAffinity: lambda args, handle: NodeAffinity(args, handle.index),
    NodePorts: lambda args, handle: NodePorts(handle.nodes),
    NodeResourcesFit: lambda args, handle: NodeResourcesFit(args, _device_amounts(handle)),
    VolumeRestrictions: lambda args, handle: VolumeRestrictions(handle.nodes, handle.listers),
    NodeVolumeLimits: lambda args, handle: NodeVolumeLimits(
        handle.nodes, handle.listers, scaling=handle.gates.enabled("VolumeLimitScaling")
    ),
    VolumeBinding: lambda args, handle: VolumeBinding(
        args, handle.nodes, handle.index, handle.listers, scores=handle.gates.enabled("StorageCapacityScoring")
    ),
    VolumeZone: lambda args, handle: VolumeZone(handle.index, handle.listers),
    PodTopologySpread: lambda args, handle: PodTopologySpread(
        args,
        handle.index,
        handle.listers,
        match_label_keys=handle.gates.enabled("MatchLabelKeysInPodTopologySpread"),
        compares=handle.gates.enabled("TaintTolerationComparisonOperators"),
    ),
    InterPodAffinity: lambda args, handle: InterPodAffinity(
        args, handle.nodes, handle.index, handle.listers.of(Namespace)
    ),
    DynamicResources: lambda args, handle: DynamicResources(
        args,
        handle.nodes,
        handle.index,
        handle.listers.shared(ClaimCache),
        ExtendedResources(handle.listers),
        afterwards=handle.afterwards,
        clock=handle.clock,
        calls=handle.calls,
    ),
    DefaultPreemption: lambda args, handle: DefaultPreemption(
        args,
        handle.nodes,
        handle.listers.of(PodDisruptionBudget),
        handle.nominator,
        handle.clock,
        groups=handle.groups,
    ),
    NodeResourcesBalancedAllocation: lambda args, handle: (
        ResultingBalance(args)
        if args.measure is BalanceMeasure.RESULT
        else NodeResourcesBalancedAllocation(args, _device_amounts(handle))
    ),
    ImageLocality: lambda args, handle: ImageLocality(handle.nodes),
    DefaultBinder: lambda args, handle: DefaultBinder(),
    NodeDeclaredFeatures: lambda args, handle: NodeDeclaredFeatures(),
    ExpectedDuration: lambda args, handle: ExpectedDuration(args, handle.nodes, handle.clock),
    NodeHeadroom: lambda args, handle: NodeHeadroom(args),
    NodeResourcesLeastRemainder: lambda args, handle: NodeResourcesLeastRemainder(args, handle.nodes),
    ScarceResourceAvoidance: lambda args, handle: ScarceResourceAvoidance(args),
    TopologyMostAllocated: lambda args, handle: TopologyMostAllocated(args, handle.index),
    NodeResourcesFragmentation: lambda args, handle: NodeResourcesFragmentation(args, handle.nodes),
    TopologyPlacementGenerator: lambda args, handle: TopologyPlacementGenerator(
        args, handle.nodes, handle.index, is_told=handle.gates.enabled("TopologyAwareWorkloadScheduling")
    ),
}
"""How each plugin is made of its arguments, which are None for plugins that take none."""

IN_TREE: Final[Mapping[str, type[Plugin]]] = {each.name: each for each in _MADE_BY}
"""The plugins of this project, by name."""


def in_tree_extends(name: str, point: str) -> bool:
    """Whether the plugin `name` extends an extension point; LookupError when there is no such plugin."""
    return extends(IN_TREE[name], point)


def build_frameworks(
    configuration: SchedulerConfiguration,
    nodes: NodeTable,
    listers: Listers | None = None,
    nominator: Nominator | None = None,
    clock: Callable[[], float] = time.time,
    *,
    waiting_pods: WaitingPods | None = None,
    afterwards: Afterwards = lambda exchange: None,
    metrics: Metrics | None = None,
    groups: PodGroups | None = None,
) -> dict[str, Framework]:
    """The framework of each profile by schedulerName; all share one index of the node table, listers and nominator.

    `clock` gives seconds since the epoch. Listers, nominator, `waiting_pods`, `afterwards` and `groups` outlive
    frameworks that are replaced. `metrics` receive how long plugins take.

    Raises:
        ConfigurationError: a profile's plugin sets do not work out, or a plugin from outside is no good; every
            complaint of every profile.
    """
    handle = Handle(
        nodes,
        NodeIndex(nodes),
        listers or Listers(),
        nominator or Nominator(),
        WaitingPods() if waiting_pods is None else waiting_pods,
        afterwards,
        clock=clock,
        gates=configuration.feature_gates,
        groups=PodGroups(Cache()) if groups is None else groups,
    )
    configuration = leave_to_extenders(configuration)
    outside = load_out_of_tree(configuration, IN_TREE.keys(), handle)
    made = {name: plugin for plugins in outside.values() for name, plugin in plugins.items()}

    def extends_point(name: str, point: str) -> bool:
        return extends(made[name], point) if name in made else in_tree_extends(name, point)

    expanded = expand_profiles(configuration, extends_point)
    return {
        profile.scheduler_name: _build(
            _with_percentage(profile, configuration),
            expanded[profile.scheduler_name],
            handle,
            outside[profile.scheduler_name],
            configuration.extenders,
            metrics=metrics,
        )
        for profile in configuration.profiles
    }


def _with_percentage(profile: Profile, configuration: SchedulerConfiguration) -> Profile:
    """The profile with the global percentageOfNodesToScore if it has none of its own."""
    if profile.percentage_of_nodes_to_score is not None:
        return profile
    return replace(profile, percentage_of_nodes_to_score=configuration.percentage_of_nodes_to_score)


def _build(
    profile: Profile,
    expanded: Mapping[str, tuple[PluginEntry, ...]],
    handle: Handle,
    outside: Mapping[str, Plugin],
    extenders: Sequence[Extender],
    *,
    metrics: Metrics | None,
) -> Framework:
    made: dict[str, Plugin] = dict(outside)
    calls = PluginCalls(profile.scheduler_name, metrics)
    handle = replace(handle, calls=calls)

    def make(name: str) -> Plugin:
        if name not in made:
            args = profile.plugin_config.get(name) or default_args(name)
            made[name] = _MADE_BY[IN_TREE[name]](args, handle)
        return made[name]

    points: dict[str, list[tuple[Any, int]]] = {
        point: [(make(entry.name), entry.weight) for entry in entries] for point, entries in expanded.items()
    }
    generator = TopologyPlacementGenerator.name
    if generator in profile.plugin_config or handle.gates.enabled("TopologyAwareWorkloadScheduling"):
        points["placement_generate"] = [(make(generator), 0)]
    return Framework(profile, points, extenders, handle.waiting_pods, calls)
