"""The pod groups that are known, and whose kinds the API server serves."""

from collections.abc import Iterator, Mapping

from bayplan.cache.cache import Cache
from bayplan.cache.group_members import GroupSource, PodGroupKey, group_key
from bayplan.cache.pod_info import PodInfo
from bayplan.groups.pod_group import PodGroup


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
