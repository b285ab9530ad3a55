"""Waits that take no time."""

import asyncio


class Sleeps:
    """Notes how long it was asked to sleep, and lets the rest of the program run."""

    def __init__(self) -> None:
        self.delays: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.delays.append(seconds)
        await asyncio.sleep(0)
