"""Several configurations on the same cluster: what each made of it, and which pods are elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bayplan.api.natural_order import natural_key
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.report import Compared, Comparison, MovedPod, Report

PodKey = tuple[str, str]
"""Namespace and name of a pod."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one configuration, called after its file, made of the cluster, and where pods are in the end."""

    config: str
    report: Report
    placements: Mapping[PodKey, str]


def own_pods(objects: ClusterObjects) -> ClusterObjects:
    """Return the same objects for another simulation, decoded once; what a configuration makes of pods is not shared.

    A simulation keeps on a pod what its profiles take it for, which another configuration sees otherwise.
    """
    pods = []
    for pod in objects.pods:
        own = PodInfo(pod.pod)
        own.take_over(pod)
        pods.append(own)
    return replace(objects, pods=pods)


def placements(nodes: NodeTable) -> dict[PodKey, str]:
    """Return the node of each pod that is on one of the nodes."""
    return {
        (pod.namespace, pod.name): nodes.names[row] for row in nodes.rows().tolist() for pod in nodes.pods[row].values()
    }


def compared(outcomes: Sequence[Outcome]) -> Comparison:
    """Return the outcomes side by side, with every pod that is not on the same node in all of them."""
    moved = []
    for key in {key for outcome in outcomes for key in outcome.placements}:
        nodes = [outcome.placements.get(key) for outcome in outcomes]
        if len(set(nodes)) > 1:
            moved.append(MovedPod(*key, nodes))
    moved.sort(key=lambda pod: (natural_key(pod.namespace), natural_key(pod.name)))
    return Comparison([Compared(outcome.config, outcome.report) for outcome in outcomes], moved)
