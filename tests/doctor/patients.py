"""Clusters that the doctor looks at: a good one, and what faults are planted with."""

from dataclasses import replace

from tests.builders import make_node, make_pod_info

from bayplan.api.meta_objects import ObjectMeta
from bayplan.api.objects import LabelSelector
from bayplan.api.workload_objects import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    Service,
    ServiceSpec,
)
from bayplan.config.load import default_configuration
from bayplan.config.types import (
    NodeResourcesFitArgs,
    PluginEntry,
    PodTopologySpreadArgs,
    ScoringStrategy,
    ScoringStrategyType,
)
from bayplan.doctor.checkup import findings
from bayplan.doctor.finding import Patient
from bayplan.simulate.cluster_objects import ClusterObjects

GPU = "nvidia.com/gpu"


def nodes(count=4, *, cpu=8, memory="32Gi", **fields):
    return [make_node(f"n{number}", cpu=cpu, memory=memory, pods=110, **fields) for number in range(1, count + 1)]


def running(name, node, cpu=2, memory="4Gi", **fields):
    return make_pod_info(name, node=node, cpu=cpu, memory=memory, owner="ReplicaSet/web", uid=name, **fields)


def spread_out(count=4, **fields):
    """A pod on each node."""
    return [running(f"p{number}", f"n{number}", **fields) for number in range(1, count + 1)]


def budget(allowed, healthy, **labels):
    return PodDisruptionBudget(
        ObjectMeta(name="web", namespace="default"),
        PodDisruptionBudgetSpec(LabelSelector(match_labels=labels)),
        PodDisruptionBudgetStatus(
            disruptions_allowed=allowed, desired_healthy=healthy, current_healthy=healthy + allowed
        ),
    )


def service(**labels):
    return Service(ObjectMeta(name="web", namespace="default"), ServiceSpec(labels))


def configuration(strategy=ScoringStrategyType.MOST_ALLOCATED, *, spread=None, **weights):
    """The default configuration with another strategy, other spreading, or other weights of scores."""
    made = default_configuration()
    profile = made.profiles[0]
    fit = NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(strategy))
    config = {**profile.plugin_config, "NodeResourcesFit": fit}
    if spread is not None:
        config["PodTopologySpread"] = PodTopologySpreadArgs(defaulting_type=spread)
    multi_point = profile.plugins.multi_point
    enabled = tuple(PluginEntry(each.name, weights.get(each.name, each.weight)) for each in multi_point.enabled)
    plugins = replace(profile.plugins, multi_point=replace(multi_point, enabled=enabled))
    return replace(made, profiles=(replace(profile, plugins=plugins, plugin_config=config),))


def found(nodes, pods, *, looked_up=(), others=(), config=None, **fields):
    """What the doctor finds."""
    objects = ClusterObjects(nodes=nodes, pods=pods, looked_up=[*looked_up])
    return findings(Patient(config or configuration(), objects, others, **fields))
