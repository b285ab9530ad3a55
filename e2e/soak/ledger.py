"""What was asked for, what became of it, and every promise that was broken on the way.

Told of every creation before it is sent and of every event in the API server's own order. Pure: time is an argument.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from e2e.soak.room import Amounts, Room, amounts_of
from e2e.soak.seen import SeenPod

_SHOWN = 20
_AGAIN_SECONDS = 1.0
_OVER = frozenset({"Succeeded", "Failed"})


class Fate(Enum):
    """What must become of a pod: it is bound, it is bound if there is room, or it never is."""

    BINDS = "binds"
    MAY_WAIT = "may wait"
    NEVER_BINDS = "never binds"


@dataclass(slots=True)
class Tracked:
    """One pod that is there; `kind` is what it is for, times are monotonic seconds."""

    name: str
    kind: str
    fate: Fate
    sent: float
    uid: str = ""
    node: str = ""
    amounts: Amounts = Amounts()  # noqa: RUF009  it cannot be changed
    is_running: bool = False
    is_deleted: bool = False
    """Whether the soak has asked for its deletion."""
    is_ending: bool = False
    requests: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    """What each container asks for now, as the API server writes it."""


@dataclass(frozen=True, slots=True)
class Latency:
    """One bind: of which kind, when its creation was sent, and how long after that it was seen."""

    kind: str
    sent: float
    seconds: float


class Ledger:
    """Follows pods from their creation to their end.

    Guarantees that `broken` holds a text for each pod that was seen on two nodes, for each that was bound and could
    not be, and for each node that held more than it has at any moment of the watch's order.
    """

    def __init__(self, allocatable: Callable[[str], Amounts | None], *, lifetime: float) -> None:
        self.room = Room(allocatable)
        self.pods: dict[str, Tracked] = {}
        """The pods that are there, by UID."""
        self.unbound: dict[str, Tracked] = {}
        self.to_report: dict[str, Tracked] = {}
        """Pods whose kubelet has something to say: that they run, or that a resize is done."""
        self.to_end: dict[str, Tracked] = {}
        """Pods on nodes that were told to end, and wait for their kubelet."""
        self.latencies: list[Latency] = []
        self.counts: Counter[str] = Counter()
        self.broken: list[str] = []
        self._lifetime = lifetime
        self._expected: dict[str, Tracked] = {}
        self._due: list[tuple[float, str]] = []

    def expect(self, name: str, kind: str, fate: Fate, sent: float) -> None:
        """A creation is about to be sent."""
        self._expected[name] = Tracked(name, kind, fate, sent)

    def refused(self, name: str) -> None:
        """The creation did not happen, for certain."""
        self._expected.pop(name, None)

    def see(self, kind: str, pod: SeenPod, now: float) -> None:
        """Takes in an event of the watch."""
        if kind == "DELETED":
            self._gone(pod.metadata.uid)
            return
        tracked = self._seen(pod, now)
        if tracked is not None and tracked.node and self.room.is_overfull(tracked.node):
            self._break(
                f"{tracked.node} holds more than it has with {tracked.name}: {self.room.free(tracked.node)} left"
            )

    def replace(self, pods: Iterable[SeenPod], now: float) -> None:
        """Takes in a list of all there is: what it does not hold is gone. Binds it shows have no latency."""
        present = {pod.metadata.uid: pod for pod in pods}
        for uid in self.pods.keys() - present.keys():
            self._gone(uid)
        for pod in present.values():
            self._seen(pod, now)
        for node in self.room.nodes():
            if self.room.is_overfull(node):
                self._break(f"{node} holds more than it has: {self.room.free(node)} left")

    def expired(self, now: float) -> list[Tracked]:
        """Returns pods that have lived long enough and were not told to end; each is returned once."""
        found: list[Tracked] = []
        while self._due and self._due[0][0] <= now:
            tracked = self.pods.get(heapq.heappop(self._due)[1])
            if tracked is not None and not tracked.is_ending:
                found.append(tracked)
        return found

    def try_again(self, tracked: Tracked, now: float) -> None:
        """A deletion did not happen, or nobody knows: it is due again a second later."""
        heapq.heappush(self._due, (now + _AGAIN_SECONDS, tracked.uid))

    def on_node(self, node: str) -> list[Tracked]:
        """Returns the pods of a node that the soak has not deleted."""
        return [each for each in self.pods.values() if each.node == node and not each.is_deleted]

    def lost(self) -> list[Tracked]:
        """Returns the pods that should be on a node and are not."""
        return [each for each in self.unbound.values() if each.fate is Fate.BINDS]

    def waiting_that_fit(self, nodes: Iterable[str]) -> list[Tracked]:
        """Returns the pods that may wait and do, although one of these nodes has room for them."""
        rooms = [self.room.free(node) for node in nodes]
        waiting = [each for each in self.unbound.values() if each.fate is Fate.MAY_WAIT]
        return [each for each in waiting if any(each.amounts.fits_in(room) for room in rooms)]

    def _seen(self, pod: SeenPod, now: float) -> Tracked | None:
        uid, node = pod.metadata.uid, pod.spec.node_name
        tracked = self.pods.get(uid)
        if tracked is None:
            tracked = self._expected.pop(pod.metadata.name, None)
            if tracked is None:
                return None  # somebody else's
            tracked.uid = uid
            self.pods[uid] = self.unbound[uid] = tracked
            self.counts["created"] += 1
            if tracked.fate is not Fate.BINDS:
                heapq.heappush(self._due, (now + self._lifetime, uid))
        if node != tracked.node:
            self._bound(tracked, node, now)
        tracked.requests = tuple((each.name, tuple(each.requests.items())) for each in pod.spec.containers)
        self._update_ends(tracked, pod)
        if node or tracked.fate is Fate.MAY_WAIT:
            tracked.amounts = amounts_of(pod)
        if node and pod.status.phase not in _OVER:
            self.room.put(uid, node, tracked.amounts)
        else:
            self.room.remove(uid)
        if node and not pod.is_reported and not tracked.is_ending:
            self.to_report[uid] = tracked
        else:
            self.to_report.pop(uid, None)
        tracked.is_running = pod.status.phase == "Running"
        return tracked

    def _bound(self, tracked: Tracked, node: str, now: float) -> None:
        if tracked.node:
            self._break(f"{tracked.name} was on {tracked.node} and is on {node or 'no node'}")
        elif tracked.fate is Fate.NEVER_BINDS:
            self._break(f"{tracked.name} ({tracked.kind}) can be on no node and is on {node}")
        tracked.node = node
        self.unbound.pop(tracked.uid, None)
        self.counts["bound"] += 1
        self.latencies.append(Latency(tracked.kind, tracked.sent, now - tracked.sent))
        if tracked.fate is Fate.BINDS:
            heapq.heappush(self._due, (now + self._lifetime, tracked.uid))

    def _update_ends(self, tracked: Tracked, pod: SeenPod) -> None:
        if pod.metadata.deletion_timestamp is None:
            return
        if not tracked.is_ending and not tracked.is_deleted:
            self.counts["preempted"] += 1
        tracked.is_ending = True
        if tracked.node and pod.metadata.deletion_grace_period_seconds:
            self.to_end[tracked.uid] = tracked

    def _gone(self, uid: str) -> None:
        tracked = self.pods.pop(uid, None)
        if tracked is None:
            return
        self.counts["deleted"] += 1
        if not tracked.is_deleted and not tracked.is_ending:
            self.counts["preempted"] += 1
        self.room.remove(uid)
        for index in (self.unbound, self.to_report, self.to_end):
            index.pop(uid, None)

    def _break(self, text: str) -> None:
        self.counts["broken promises"] += 1
        if len(self.broken) < _SHOWN:
            self.broken.append(text)
