"""What must hold of all that ever happened, checked from the API server's history and the scheduler's writes.

The names P1, P2, ... are those of docs/faults.md.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec
from tests.faults.api_server import Change, Object
from tests.faults.memory_api import NODES, PODS, MemoryApi, Write

from bayplan.api.objects import Node, Pod
from bayplan.cache.resources import node_allocatable, placed_requests

FINISHED = {"Succeeded", "Failed"}
KNOWN_SECONDS = 0.05
"""A scheduler must reckon with what its watch was told so long before it sent a binding."""

_ASSIGNED = f"{PODS}?spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
_NODES = f"{NODES}?"
_DECIDED_SECONDS = 120.0


class History:
    """The changes of pods and nodes in their order, and the scheduler's writes among them."""

    def __init__(self, api: MemoryApi) -> None:
        self._api = api
        self._changes = {change.version: change for change in api.history}
        made = [write for write in api.writes if write.target.collection == PODS]
        self._binds = [w for w in made if w.target.subresource == "binding" and w.status == 201]
        self._deletes = [write for write in made if write.method == "DELETE"]

    def broken(self) -> Iterator[str]:
        """Every promise that was broken, in words."""
        yield from self.p1_bound_once()
        yield from self.p2_not_posted_again()
        yield from self.p3_never_too_full()
        yield from self.p6_only_what_is_ours()
        yield from self.p13_p16_victims()

    def p1_bound_once(self) -> Iterator[str]:
        for uid, number in Counter(write.uid for write in self._binds).items():
            if number > 1:
                yield f"P1 {uid} was bound {number} times"
        nodes: dict[str, str] = {}
        for change in self._of(PODS):
            uid, node = change.obj["metadata"]["uid"], node_of(change.obj)
            if nodes.setdefault(uid, node) not in {"", node}:
                yield f"P1 {uid} moved from {nodes[uid]} to {node}"
            nodes[uid] = node

    def p2_not_posted_again(self) -> Iterator[str]:
        """No binding is sent for a pod that the watch had shown on a node."""
        bound = {write.uid: write for write in self._binds}
        for post in self._api.posts:
            write = bound.get(post.uid)
            if write is None or post.life != write.life or post.at <= write.at:
                continue
            if self._known(_ASSIGNED, post.at) >= write.version:
                yield f"P2 {post.uid} was posted at {post.at:.3f} though it was seen bound before"

    def p3_never_too_full(self) -> Iterator[str]:
        """No bind overfills a node with what the scheduler itself bound and what its watch had told."""
        ours = {write.uid for write in self._binds}
        for write, change, pods in self._bound():
            node, decided = node_of(change.obj), self._sent(write, first=True)
            told = self._known(_ASSIGNED, decided)
            counted = [
                pod
                for pod in pods
                if takes_room_on(pod, node) and (pod["metadata"]["uid"] in ours or self._placed_at(pod) <= told)
            ]
            offers = self._node_since(node, self._known(_NODES, decided), write.version)
            if offers and all(is_overfull(each, counted) for each in offers):
                names = sorted(pod["metadata"]["name"] for pod in counted)
                yield f"P3 {node} holds {names} since the bind of {change.obj['metadata']['name']} at {write.at:.3f}"

    def p6_only_what_is_ours(self) -> Iterator[str]:
        for write, change, _ in self._bound():
            name, before, node = change.obj["metadata"]["name"], change.old or {}, node_of(change.obj)
            if before["spec"].get("schedulerName") != "bayplan" or before["status"].get("phase") in FINISHED:
                yield f"P6 {name} was not ours to bind"
            if not self._node_since(node, self._known(_NODES, self._sent(write, first=False)), write.version):
                yield f"P6 {name} was bound to {node}, which was known to be gone"

    def p13_p16_victims(self) -> Iterator[str]:
        """Victims are of lower priority than a pod nominated to their node, are told why, and end in their own time."""
        for write in self._deletes:
            if not (write.body.get("preconditions") or {}).get("uid") or "gracePeriodSeconds" in write.body:
                yield f"P16 {write.target.key} was deleted with {write.body}"
            change = self._changes.get(write.version)
            if write.status != 200 or change is None or change.old is None or change.collection != PODS:
                continue
            victim = change.old
            if victim["metadata"]["uid"] != write.uid or victim["metadata"].get("deletionTimestamp"):
                continue
            name = victim["metadata"]["name"]
            node = node_of(victim) or self._being_bound_to(write)
            if self._highest_claim(node, write.version) <= priority_of(victim):
                yield f"P13 {name} was ended for no pod of higher priority that was nominated to its node"
            if not any(each["type"] == "DisruptionTarget" for each in victim["status"].get("conditions", ())):
                yield f"P16 {name} was ended without a DisruptionTarget condition"

    def _of(self, collection: str) -> Iterator[Change]:
        for change in self._api.history:
            if change.collection == collection and change.type in {"ADDED", "MODIFIED"}:
                yield change

    def _bound(self) -> Iterator[tuple[Write, Change, list[Object]]]:
        """Each bind that happened, its change, and all pods as they were after it."""
        binds, pods = {write.version: write for write in self._binds}, dict[str, Object]()
        for change in self._api.history:
            if change.collection != PODS or change.type == "BOOKMARK":
                continue
            name = change.obj["metadata"]["name"]
            if change.type == "DELETED":
                pods.pop(name, None)
            else:
                pods[name] = change.obj
            if change.version in binds:
                yield binds[change.version], change, list(pods.values())

    def _highest_claim(self, node: str, until: int) -> int:
        """The highest priority that was ever nominated to the node."""
        claims = [
            priority_of(change.obj)
            for change in self._of(PODS)
            if change.version <= until
            and change.obj["status"].get("nominatedNodeName") == node
            and change.obj["spec"].get("preemptionPolicy") != "Never"
        ]
        return max(claims, default=-(2**31))

    def _being_bound_to(self, end: Write) -> str:
        """The node that a pod was sent to when it was ended, although the API server does not know of it yet."""
        return next((post.node for post in reversed(self._api.posts) if post.uid == end.uid and post.at <= end.at), "")

    def _sent(self, write: Write, *, first: bool) -> float:
        """When the binding was sent for the first time, and so was decided, or for the last."""
        node = node_of(self._changes[write.version].obj)
        sent = [
            post.at
            for post in self._api.posts
            if (post.uid, post.node) == (write.uid, node) and write.at - _DECIDED_SECONDS < post.at <= write.at
        ]
        return min(sent) if first else max(sent)

    def _known(self, watch: str, at: float) -> int:
        """The version up to which a watch had told its scheduler everything, a moment before."""
        return max([version for time, version in self._api.delivered[watch] if time <= at - KNOWN_SECONDS], default=0)

    def _placed_at(self, pod: Object) -> int:
        uid = pod["metadata"]["uid"]
        return min(c.version for c in self._of(PODS) if c.obj["metadata"]["uid"] == uid and node_of(c.obj))

    def _node_since(self, name: str, known: int, until: int) -> list[Object]:
        """All that the node was from the version that was known on; empty if it was gone all the time."""
        seen: list[Object] = []
        current: Object | None = None
        for change in self._api.history:
            if change.version > until:
                break
            if change.collection == NODES and change.type != "BOOKMARK" and change.obj["metadata"]["name"] == name:
                if change.version > known and current is not None:
                    seen.append(current)
                current = None if change.type == "DELETED" else change.obj
        return [*seen, current] if current is not None else seen


def node_of(pod: Object) -> str:
    """The node a pod is on, or ""."""
    return str(pod["spec"].get("nodeName") or "")


def priority_of(pod: Object) -> int:
    return int(pod["spec"].get("priority") or 0)


def takes_room_on(pod: Object, node: str) -> bool:
    """Whether a pod counts on a node."""
    return node_of(pod) == node and pod["status"].get("phase") not in FINISHED


def is_overfull(node: Object, pods: list[Object]) -> bool:
    """Whether pods ask for more than a node offers, in exact sums."""
    offered = node_allocatable(msgspec.convert(node, Node))
    asked: Counter[str] = Counter(pods=len(pods))
    for pod in pods:
        asked.update(placed_requests(msgspec.convert(pod, Pod)).amounts)
    return any(amount > offered.get(name, 0) for name, amount in asked.items())
