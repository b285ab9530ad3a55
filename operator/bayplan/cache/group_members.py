"""Which pods on nodes belong to which pod group."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from bayplan.api.objects import Pod
from bayplan.cache.pod_info import PodInfo

POD_GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"
"""By which pods name a group of the CRD (upstream: scheduler-plugins, apis/scheduling/v1alpha1)."""


class GroupSource(StrEnum):
    """Whose kind PodGroup a group is of, by its API version."""

    NATIVE = "scheduling.k8s.io/v1beta1"
    CRD = "scheduling.x-k8s.io/v1alpha1"


class PodGroupKey(NamedTuple):
    """What pods name a group by: two kinds of object may have one name, and a deleted group's name comes again."""

    source: GroupSource
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


_NO_MEMBERS: Final[Mapping[str, PodInfo]] = MappingProxyType({})


def group_key(pod: Pod) -> PodGroupKey | None:
    """Return the group that the pod names: by its spec, else by its label; None for nearly all pods.

    It says nothing about whether that group exists, or whether anybody serves its kind. A label may hold what is no
    name of an object; no group has it then.
    """
    named = pod.spec.scheduling_group
    if named is not None and named.pod_group_name:
        return PodGroupKey(GroupSource.NATIVE, pod.metadata.namespace, named.pod_group_name)
    labels = pod.metadata.labels
    name = None if labels is None else labels.get(POD_GROUP_LABEL)
    return PodGroupKey(GroupSource.CRD, pod.metadata.namespace, name) if name else None


def _counted_with(pod: PodInfo) -> PodGroupKey | None:
    """Return the group among whose members the pod is counted.

    Who names a group of the CRD and ends is counted with none: a workload that is submitted again under its name has
    another gang in that group while the pods of the one before take their grace period. Kubernetes' own group stays
    until its last pod is gone, and counts them (upstream: backend/cache/podgroupstate.go).
    """
    key = group_key(pod.pod)
    return None if key is not None and key.source is GroupSource.CRD and pod.is_terminating else key


class GroupMembers:
    """The pods on nodes by the group they name, assumed or bound, whoever bound them; finished ones are not among them.

    Nor are those of the CRD's groups that end.

    The cache keeps it with each pod it counts, so that gates and rounds find how many members a group has in O(1). It
    holds nothing for pods without a group, and nothing for groups without a member on a node.
    """

    __slots__ = ("_members",)

    def __init__(self) -> None:
        self._members: dict[PodGroupKey, dict[str, PodInfo]] = {}

    def of(self, key: PodGroupKey) -> Mapping[str, PodInfo]:
        """The members on nodes by UID, in the order in which they were counted there; not to be kept."""
        return self._members.get(key, _NO_MEMBERS)

    def add(self, pod: PodInfo) -> None:
        """Count a pod that is on a node now."""
        key = _counted_with(pod)
        if key is not None:
            self._members.setdefault(key, {})[pod.uid] = pod

    def remove(self, pod: PodInfo) -> None:
        """Count a pod no more that was added in this version."""
        key = _counted_with(pod)
        if key is not None:
            members = self._members[key]
            del members[pod.uid]
            if not members:
                del self._members[key]

    def replace(self, before: PodInfo, after: PodInfo) -> None:
        """Take another version of a pod, which may name another group, or end."""
        if _counted_with(before) != _counted_with(after):
            self.remove(before)
        self.add(after)
