"""Pods that wait for room being made on a node (upstream: backend/queue/nominator.go)."""

from bayplan.cache.pod_info import PodInfo


class Nominator:
    """Which pods are nominated to which node; filters rely on it to keep freed room for its pod.

    It runs ahead of the API: preemption nominates here first and patches the status after. Each pod has at
    most one node.
    """

    __slots__ = ("_node_of", "_pods_on")

    def __init__(self) -> None:
        self._node_of: dict[str, str] = {}
        self._pods_on: dict[str, dict[str, PodInfo]] = {}

    def add(self, pod: PodInfo, node: str) -> None:
        """Nominates the pod to `node` in place of any earlier nomination."""
        if not node:
            raise ValueError(f"pod {pod.key}: a nomination needs a node name")
        self.delete(pod.uid)
        self._node_of[pod.uid] = node
        self._pods_on.setdefault(node, {})[pod.uid] = pod

    def update(self, old: PodInfo, new: PodInfo) -> None:
        """Follows an update of the pod object.

        The status decides, except when neither version has a nomination: then the update was under way before
        our patch arrived, and the nomination made here stays.
        """
        node = new.pod.status.nominated_node_name
        if not node and not old.pod.status.nominated_node_name:
            node = self._node_of.get(new.uid, "")
        if not node:
            self.delete(new.uid)
        elif node == self._node_of.get(new.uid):
            self._pods_on[node][new.uid] = new
        else:
            self.add(new, node)

    def delete(self, uid: str) -> None:
        """Ends the pod's nomination, if it has one."""
        node = self._node_of.pop(uid, None)
        if node is None:
            return
        pods = self._pods_on[node]
        del pods[uid]
        if not pods:
            del self._pods_on[node]

    def nominated_pods_for_node(self, node: str) -> list[PodInfo]:
        """The pods nominated to `node`, in order of nomination."""
        return list(self._pods_on.get(node, {}).values())

    def nominated_node(self, uid: str) -> str | None:
        """The node the pod is nominated to."""
        return self._node_of.get(uid)
