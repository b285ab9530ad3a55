"""Which pods are nominated to which node (upstream: backend/queue/nominator.go)."""

import time
from collections import Counter
from collections.abc import Callable, Collection

from bayplan.cache.change_log import KeyLog
from bayplan.cache.pod_info import PodInfo


class Nominator:
    """Knows which pods are nominated to which node; filters rely on it to keep freed room for its pod.

    It runs ahead of the API: preemption nominates here first and patches the status after. Each pod has at
    most one node. `clock` gives seconds, for `oldest_age` alone.
    """

    __slots__ = ("_aside", "_changed", "_clock", "_node_of", "_pods_on", "_priorities", "_since")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # In order of time, as a dictionary keeps it: the first is the oldest.
        self._since: dict[str, float] = {}
        self._node_of: dict[str, str] = {}
        self._pods_on: dict[str, dict[str, PodInfo]] = {}
        self._priorities: Counter[int] = Counter()
        self._changed = KeyLog()
        self._aside: frozenset[str] = frozenset()

    def add(self, pod: PodInfo, node: str) -> None:
        """Nominate the pod to `node` in place of any earlier nomination."""
        if not node:
            raise ValueError(f"pod {pod.key}: a nomination needs a node name")
        self.delete(pod.uid)
        self._since[pod.uid] = self._clock()
        self._node_of[pod.uid] = node
        self._pods_on.setdefault(node, {})[pod.uid] = pod
        self._priorities[pod.priority] += 1
        self._changed.append(node)

    def update(self, old: PodInfo, new: PodInfo) -> None:
        """Follow an update of the pod object.

        The status decides, except when neither version has a nomination: then the update was under way before
        our patch arrived, and the nomination made here stays.
        """
        node = new.pod.status.nominated_node_name
        if not node and not old.pod.status.nominated_node_name:
            node = self._node_of.get(new.uid, "")
        if not node:
            self.delete(new.uid)
        elif node == self._node_of.get(new.uid):
            self.refresh(new)
        else:
            self.add(new, node)

    def delete(self, uid: str) -> None:
        """End the pod's nomination, if it has one."""
        node = self._node_of.pop(uid, None)
        if node is None:
            return
        del self._since[uid]
        pods = self._pods_on[node]
        self._forget_priority(pods.pop(uid).priority)
        self._changed.append(node)
        if not pods:
            del self._pods_on[node]

    def refresh(self, pod: PodInfo) -> None:
        """Replace the object of a nominated pod; any other pod is left alone."""
        node = self._node_of.get(pod.uid)
        if node is not None:
            pods = self._pods_on[node]
            self._forget_priority(pods[pod.uid].priority)
            pods[pod.uid] = pod
            self._priorities[pod.priority] += 1
            self._changed.append(node)

    def count(self) -> int:
        """Return how many pods are nominated."""
        return len(self._node_of)

    def oldest_age(self) -> float:
        """Return for how many seconds the oldest nomination has lasted; 0 without any."""
        oldest = next(iter(self._since.values()), None)
        return 0.0 if oldest is None else self._clock() - oldest

    def age(self, uid: str) -> float | None:
        """Return for how many seconds the pod has been nominated; None if it is not."""
        since = self._since.get(uid)
        return None if since is None else self._clock() - since

    def nodes(self) -> Collection[str]:
        """Return the names of the nodes that any pod is nominated to, as a set that follows; they need not exist."""
        return self._pods_on.keys()

    def get(self, uid: str) -> PodInfo | None:
        """Return the pod, if it is nominated."""
        node = self._node_of.get(uid)
        return None if node is None else self._pods_on[node][uid]

    def nominated_pods_for_node(self, node: str) -> list[PodInfo]:
        """Return the pods nominated to `node`, in order of nomination."""
        return list(self._pods_on.get(node, {}).values())

    def counted_pods_for_node(self, node: str) -> list[PodInfo]:
        """Return those of `nominated_pods_for_node` that keep their room from others: all that are not set aside."""
        return [pod for uid, pod in self._pods_on.get(node, {}).items() if uid not in self._aside]

    def set_aside(self, uids: Collection[str]) -> None:
        """Have the pods with these UIDs, and no others, keep no room: they are placed together, or it is over."""
        moved = self._aside.symmetric_difference(uids)
        self._aside = frozenset(uids)
        for node in filter(None, map(self._node_of.get, moved) if self._node_of else ()):
            self._changed.append(node)

    def nominated_node(self, uid: str) -> str | None:
        """Return the node the pod is nominated to, if any."""
        return self._node_of.get(uid)

    def nominated_or_named_node(self, pod: PodInfo) -> str:
        """Return the node the pod is nominated to, otherwise the one that its status names; "" if there is neither."""
        return self._node_of.get(pod.uid) or pod.pod.status.nominated_node_name

    def lowest_priority_from(self, priority: int, besides: str = "") -> int | None:
        """Return the lowest priority of a nominated pod that is at least `priority`; None if no such pod is nominated.

        The pod with the UID `besides` does not count. Pods with the same answer see the same nominations but their own.
        """
        own = self.get(besides)
        uncounted = None if own is None else own.priority
        others = (each for each, count in self._priorities.items() if count > (each == uncounted))
        return min((each for each in others if each >= priority), default=None)

    @property
    def changes(self) -> KeyLog:
        """The log of the nodes whose nominations changed."""
        return self._changed

    def _forget_priority(self, priority: int) -> None:
        self._priorities[priority] -= 1
        if not self._priorities[priority]:
            del self._priorities[priority]
