"""Pod groups as scheduling sees them, read from either kind of object, and which kinds the API server serves."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from bayplan.api.meta_objects import Quantity
from bayplan.api.objects import Condition
from bayplan.api.workload_objects import PodGroup as PodGroupObject
from bayplan.cache.cache import Cache
from bayplan.cache.group_members import GroupSource, PodGroupKey, group_key
from bayplan.cache.pod_info import PodInfo

INITIALLY_SCHEDULED: Final = "PodGroupInitiallyScheduled"
"""The condition that says whether the group was ever placed (upstream: apis/scheduling types.go)."""


@dataclass(frozen=True, slots=True)
class PodGroup:
    """What queue, round and preemption need to know of one group; another version of it is another value.

    `least` is how many members must be on nodes, or find room, for any of them to start: at least 1, which is what a
    group has that only shares a name. `priority` is None for those of the CRD, which are as important as their most
    important member; a native group without a priority has 0. `topology_key` is "" where pods may stand anywhere.
    `evicted_as_one` has preemption take all pods or none. `created` is RFC 3339 text.
    """

    key: PodGroupKey
    uid: str
    least: int
    priority: int | None = None
    preemption_policy: str | None = None
    topology_key: str = ""
    evicted_as_one: bool = False
    min_resources: Mapping[str, Quantity] | None = None
    created: str | None = None
    is_terminating: bool = False
    generation: int = 0
    condition: Condition | None = None
    """The condition `INITIALLY_SCHEDULED` in this version, whoever wrote it."""

    @property
    def is_native(self) -> bool:
        """Whether it is of Kubernetes' own kind: with one priority for all pods, and with conditions."""
        return self.key.source is GroupSource.NATIVE


def read_pod_group(obj: PodGroupObject, source: GroupSource) -> PodGroup:
    """Return what an object of `source` says.

    The CRD takes any number, and none: a `minMember` below 2 asks for nothing, as Kubernetes' basic policy does.
    """
    meta, spec = obj.metadata, obj.spec
    if source is GroupSource.NATIVE:
        gang = None if spec.scheduling_policy is None else spec.scheduling_policy.gang
        least = 1 if gang is None else max(gang.min_count, 1)
    else:
        least = max(spec.min_member or 0, 1)
    topology = (None if spec.scheduling_constraints is None else spec.scheduling_constraints.topology) or ()
    return PodGroup(
        key=PodGroupKey(source, meta.namespace, meta.name),
        uid=meta.uid,
        least=least,
        priority=(spec.priority or 0) if source is GroupSource.NATIVE else None,
        preemption_policy=spec.preemption_policy,
        topology_key=topology[0].key if topology else "",
        evicted_as_one=spec.disruption_mode is not None and spec.disruption_mode.all is not None,
        min_resources=spec.min_resources,
        created=meta.creation_timestamp,
        is_terminating=meta.deletion_timestamp is not None,
        generation=meta.generation,
        condition=next((each for each in obj.status.conditions or () if each.type == INITIALLY_SCHEDULED), None),
    )


class PodGroups:
    """Every group as the watches bring it; queue, rounds and explanations rely on it for what a pod's group asks for.

    Where the API server never served a kind, or the role may not read it, pods that name such a group are ordinary
    pods: `of` is None for them, as in a kube-scheduler without the feature. A kind that vanishes leaves them members,
    which wait for their group: none is to start by itself because somebody deletes a CRD.
    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._groups: dict[PodGroupKey, PodGroup] = {}
        self._served: set[GroupSource] = set()
        self._evicted_as_one: set[PodGroupKey] = set()
        self.priorities_version = 0
        """Grows whenever pods on nodes may count by another priority than before."""

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[PodGroup]:
        """Give the groups in the order in which they came."""
        return iter(self._groups.values())

    def serve(self, source: GroupSource) -> bool:
        """Have pods that name groups of this kind be members from now on; False if they are already."""
        is_new = source not in self._served
        self._served.add(source)
        self.priorities_version += is_new
        return is_new

    def is_served(self, source: GroupSource) -> bool:
        """Whether groups of this kind count."""
        return source in self._served

    def of(self, pod: PodInfo) -> PodGroupKey | None:
        """The group that the pod is a member of, which need not exist yet; None for an ordinary pod."""
        key = group_key(pod.pod)
        return key if key is not None and key.source in self._served else None

    def get(self, key: PodGroupKey) -> PodGroup | None:
        """The newest version of a group; None if there is no such object."""
        return self._groups.get(key)

    def object_of(self, pod: PodInfo) -> PodGroup | None:
        """The newest version of the group that the pod is a member of; None if it is of none, or there is no object."""
        key = self.of(pod)
        return None if key is None else self.get(key)

    def set(self, group: PodGroup) -> None:
        """Take a group that is new or changed."""
        self._compare(group.key, group.priority)
        self._groups[group.key] = group
        (self._evicted_as_one.add if group.evicted_as_one else self._evicted_as_one.discard)(group.key)

    def remove(self, key: PodGroupKey) -> None:
        """Forget a group that is gone; its members, if there are any, wait for another of its name."""
        self._compare(key, None)
        self._groups.pop(key, None)
        self._evicted_as_one.discard(key)

    def evicted_as_one(self, pod: PodInfo) -> Mapping[str, PodInfo] | None:
        """The pods on nodes that preemption takes with this one, itself among them; None if it takes it alone."""
        key = self.of(pod) if self._evicted_as_one else None
        return None if key not in self._evicted_as_one or key is None else self.placed(key)

    def nodes_of_those_evicted_as_one(self) -> frozenset[str]:
        """The names of the nodes on which such pods are."""
        uids = (uid for key in self._evicted_as_one for uid in self.placed(key))
        return frozenset(name for uid in uids if (name := self._cache.node_of(uid)) is not None)

    def placed(self, key: PodGroupKey) -> Mapping[str, PodInfo]:
        """The members on nodes, assumed or bound, by UID; its length is how many there are, in O(1)."""
        return self._cache.members.of(key)

    def _compare(self, key: PodGroupKey, priority: int | None) -> None:
        known = self._groups.get(key)
        self.priorities_version += bool(self.placed(key)) and priority != (None if known is None else known.priority)
