"""Pods that Permit plugins have wait, and who has yet to allow each (upstream: runtime/waiting_pods_map.go)."""

from collections.abc import Callable, Iterable, Iterator

from bayplan.cache.pod_info import PodInfo
from bayplan.framework.status import SUCCESS, Code, Status

Ended = Callable[[Status], None]
"""Called once when a wait ends: with SUCCESS, or with a rejection that names its plugin."""


class WaitingPod:
    """A pod that is assumed on a node and is bound once every plugin that asked it to wait allows it.

    The first rejection ends the wait, and nothing said after its end counts. Plugins may speak at any time, also in the
    middle of another pod's attempt: what follows from it happens later.
    """

    __slots__ = ("_ended", "_pending", "node_name", "pod")

    def __init__(self, pod: PodInfo, node_name: str, plugins: Iterable[str], ended: Ended) -> None:
        self.pod = pod
        self.node_name = node_name
        self._pending = set(plugins)
        self._ended: Ended | None = ended

    def allow(self, plugin: str) -> None:
        """Say that `plugin` lets the pod go on; the last one that waits ends the wait."""
        self._pending.discard(plugin)
        if not self._pending:
            self._end(SUCCESS)

    def reject(self, plugin: str, message: str) -> bool:
        """Reject the pod, for the reason `message`; False if its wait is over already."""
        return self._end(Status(Code.UNSCHEDULABLE, (message,), plugin))

    def give_up(self) -> None:
        """End the wait without a word; nothing said from now on counts."""
        self._ended = None

    def _end(self, status: Status) -> bool:
        ended, self._ended = self._ended, None
        if ended is None:
            return False
        ended(status)
        return True


class WaitingPods:
    """The pods of all profiles that wait; plugins find them in their handle, and the binding cycle puts them in."""

    __slots__ = ("_pods",)

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}

    def __iter__(self) -> Iterator[WaitingPod]:
        """Give the pods in the order in which they began to wait; pods may end meanwhile."""
        return iter(list(self._pods.values()))

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> WaitingPod | None:
        """Return the pod, if it waits."""
        return self._pods.get(uid)

    def add(self, pod: PodInfo, node_name: str, plugins: Iterable[str], ended: Ended) -> WaitingPod:
        """Have the pod wait for `plugins`; it leaves when its wait ends."""

        def leave(status: Status) -> None:
            self.remove(pod.uid)
            ended(status)

        waiting = self._pods[pod.uid] = WaitingPod(pod, node_name, plugins, leave)
        return waiting

    def remove(self, uid: str) -> bool:
        """Let go of the pod without an end of its wait; False if it does not wait."""
        waiting = self._pods.pop(uid, None)
        if waiting is None:
            return False
        waiting.give_up()
        return True
