"""Nodes that change: taints come and go, nodes are cordoned, vanish with their pods and come back."""

import random
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from e2e.controlplane.client import Object, path_of
from e2e.soak.errands import MERGE_PATCH, Errands
from e2e.soak.ledger import Ledger
from e2e.soak.users import Users

_TAINTS = [{"key": "example.com/flaps", "effect": "NoSchedule"}]
_CHANGED_AT_ONCE = 10
_OK = (200, 201)


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
        self._changed: list[tuple[str, Callable[[str], Awaitable[None]]]] = []

    def change(self) -> None:
        """Changes a node, and changes back the one that was changed longest ago."""
        undone = dict(self._changed)
        held = [name for name in self._ledger.room.nodes() if name in self._nodes]
        node = self._random.choice(held if held and self._random.random() < 0.5 else self._names)
        if node not in undone:
            act, undo = self._random.choice(
                [
                    (partial(self._patch, {"taints": _TAINTS}), partial(self._patch, {"taints": None})),
                    (partial(self._patch, {"unschedulable": True}), partial(self._patch, {"unschedulable": None})),
                    (self._remove, self._make),
                ]
            )
            self._errands.start(f"node {node}", partial(act, node))
            self._changed.append((node, undo))
        if len(self._changed) > _CHANGED_AT_ONCE:
            self._undo_first()

    def restore(self) -> bool:
        """Begins to undo what is changed, and tells whether all of it is undone; what fails is tried again."""
        for _ in range(len(self._changed)):
            self._undo_first()
        return not self._changed

    def _undo_first(self) -> None:
        node, undo = self._changed.pop(0)
        if not self._errands.start(f"node {node}", partial(undo, node)):
            self._changed.append((node, undo))

    async def _patch(self, spec: Object, node: str) -> None:
        undoes = all(value is None for value in spec.values())
        status = 0
        try:
            status = await self._errands.send("PATCH", path_of("nodes", node), {"spec": spec}, MERGE_PATCH)
        finally:
            self._done(status in _OK, node, undoes, partial(self._patch, spec))

    async def _remove(self, node: str) -> None:
        """As the garbage collector does, all pods of the node go with it."""
        if await self._errands.send("DELETE", path_of("nodes", node), {}) in _OK:
            self._ledger.counts["node changes"] += 1
            for tracked in self._ledger.on_node(node):
                self._users.delete(tracked)

    async def _make(self, node: str) -> None:
        status = 0
        try:
            status = await self._errands.send("POST", path_of("nodes"), self._nodes[node])
        finally:
            self._done(status in {*_OK, 409}, node, True, self._make)

    def _done(self, happened: bool, node: str, undoes: bool, again: Callable[[str], Awaitable[None]]) -> None:
        if happened:
            self._ledger.counts["node changes"] += 1
        elif undoes:
            self._changed.append((node, again))
