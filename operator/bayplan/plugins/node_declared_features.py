"""NodeDeclaredFeatures: pods that need a feature of the kubelet run on nodes that declare it."""

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from bayplan.api.objects import Container, EphemeralContainer, Node
from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import (
    NODE_ADD,
    NODE_DECLARED_FEATURE,
    TARGET_POD_UPDATE,
    EventRegistration,
    hint_of_change,
)
from bayplan.framework.interface import CycleState, PreFilterResult
from bayplan.framework.status import SKIP, SUCCESS, Code, Codes, Reads, Reason, Traits

_RESTART_ALL = "RestartAllContainersOnContainerExits"
_USER_NAMESPACES = "UserNamespacesHostNetworkSupport"
_BIND_MOUNT_OPTIONS = "VolumeBindMountOptions"


class NodeDeclaredFeatures:
    """Rejects nodes that do not declare, in `status.declaredFeatures`, what the pod's spec needs.

    Upstream: plugins/nodedeclaredfeatures, with the features of component-helpers/nodedeclaredfeatures in 1.37 that
    matter for scheduling: restarting all containers, user namespaces with the host's network, and options of bind
    mounts.
    """

    name: ClassVar[str] = "NodeDeclaredFeatures"
    traits: ClassVar[Traits] = Traits(
        reads=Reads.NODE,
        without_pre_filter='error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found',
    )

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return _needed(pod)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        return PreFilterResult(SUCCESS if _needed(pod) else SKIP)

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        needed = _needed(pod)
        codes = np.zeros(len(rows), dtype=np.int8)
        for position, row in enumerate(rows.tolist()):
            node = nodes.nodes[row]
            declared = () if node is None else node.status.declared_features or ()
            if not needed.issubset(declared):
                codes[position] = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        return codes

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Sequence[Reason]:
        return [Reason("node(s) didn't match Pod's required features", np.ones(len(rows), dtype=np.bool_))]

    def events_to_register(self) -> Sequence[EventRegistration]:
        declared = hint_of_change(lambda node: node.status.declared_features or [], Node)
        return (
            EventRegistration(NODE_ADD, declared),
            EventRegistration(NODE_DECLARED_FEATURE, declared),
            EventRegistration(TARGET_POD_UPDATE, hint_of_change(_needed, PodInfo)),
        )


def _needed(pod: PodInfo) -> frozenset[str]:
    spec = pod.pod.spec
    needed = set()
    if spec.host_network and spec.host_users is False:
        needed.add(_USER_NAMESPACES)
    containers = (*spec.containers, *(spec.init_containers or ()))
    if any(rule.action == "RestartAllContainers" for each in containers for rule in each.restart_policy_rules or ()):
        needed.add(_RESTART_ALL)
    if any(map(_has_bind_mount_options, (*containers, *(spec.ephemeral_containers or ())))):
        needed.add(_BIND_MOUNT_OPTIONS)
    return frozenset(needed)


def _has_bind_mount_options(container: Container | EphemeralContainer) -> bool:
    return any(mount.bind_mount_options for mount in container.volume_mounts or ())
