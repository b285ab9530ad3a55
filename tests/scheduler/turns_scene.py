"""Calls that take turns, and are answered as told."""

import asyncio

from bayplan.scheduler.turns import Turns

SLOW_SECONDS = 0.05


class Calls:
    """Calls that are answered when told, or at once where the namespace does not hang; admission refuses some."""

    def __init__(self, size=6, **options):
        self.turns = Turns(size, slow_seconds=SLOW_SECONDS, **options)
        self.hangs = set()
        self.refuses = set()
        self.under_way = []
        self.done = []
        self.answer = asyncio.Event()

    def call(self, namespace, times=1, rank=0, **options):
        for _ in range(times):
            self.turns.start(namespace, lambda turn: self._perform(namespace, rank, turn), rank, **options)

    async def _perform(self, namespace, rank, turn):
        async with turn:
            turn.sent()
            self.under_way.append(namespace)
            if namespace in self.hangs:
                await self.answer.wait()
            self.under_way.remove(namespace)
            turn.refused = namespace in self.refuses
        self.done.append((namespace, rank))

    async def slow(self):
        """Time passes until what hangs is slow."""
        await asyncio.sleep(SLOW_SECONDS * 2)
