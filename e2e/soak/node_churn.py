"""Nodes that change: taints come and go, nodes are cordoned, vanish with their pods and come back."""

import random
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from e2e.controlplane.client import Object, path_of
from e2e.soak.errands import MERGE_PATCH, Errands
from e2e.soak.ledger import Ledger
from e2e.soak.users import Users

Act = Callable[[str], Awaitable[bool]]
"""Does something to a node of this name, and tells whether it happened."""

_TAINTS = [{"key": "example.com/flaps", "effect": "NoSchedule"}]
_CHANGED_AT_ONCE = 10
_CREATED, _OK, _CONFLICT = 201, 200, 409


class NodeChurn:
    """Changes one node after the other, half of them nodes that hold pods; `restore` undoes all of it."""

    def __init__(
        self, nodes: Mapping[str, Object], ledger: Ledger, errands: Errands, users: Users, *, seed: int
    ) -> None:
        self._nodes = nodes
        self._names = list(nodes)
        self._ledger = ledger
        self._errands = errands
        self._users = users
        self._random = random.Random(seed)
        self._changed: dict[str, Act] = {}
        self._kinds: list[tuple[Act, Act]] = [
            (partial(self._patch, {"taints": _TAINTS}), partial(self._patch, {"taints": None})),
            (partial(self._patch, {"unschedulable": True}), partial(self._patch, {"unschedulable": None})),
            (self._remove, self._make),
        ]

    def change(self) -> None:
        """Changes a node, and changes back the one that was changed longest ago."""
        held = [name for name in self._ledger.room.nodes() if name in self._nodes]
        node = self._random.choice(held if held and self._random.random() < 0.5 else self._names)
        if node not in self._changed:
            act, undo = self._random.choice(self._kinds)
            if self._errands.start(f"node {node}", partial(self._do, act, node)):
                self._changed[node] = undo
        if len(self._changed) > _CHANGED_AT_ONCE:
            self._begin_to_undo(next(iter(self._changed)))

    def restore(self) -> bool:
        """Begins to undo what is still changed, and tells whether nothing is; what fails is for the next call."""
        for node in list(self._changed):
            self._begin_to_undo(node)
        return not self._changed

    def _begin_to_undo(self, node: str) -> None:
        self._errands.start(f"node {node}", partial(self._undo, node))

    async def _do(self, act: Act, node: str) -> None:
        self._ledger.counts["node changes"] += await act(node)

    async def _undo(self, node: str) -> None:
        if await self._changed[node](node):
            self._ledger.counts["node changes"] += 1
            del self._changed[node]

    async def _patch(self, spec: Object, node: str) -> bool:
        return await self._errands.send("PATCH", path_of("nodes", node), {"spec": spec}, MERGE_PATCH) == _OK

    async def _remove(self, node: str) -> bool:
        """As the garbage collector does, all pods of the node go with it."""
        happened = await self._errands.send("DELETE", path_of("nodes", node), {}) == _OK
        if happened:
            for tracked in self._ledger.on_node(node):
                self._users.delete(tracked)
        return happened

    async def _make(self, node: str) -> bool:
        return await self._errands.send("POST", path_of("nodes"), self._nodes[node]) in {_CREATED, _CONFLICT}
