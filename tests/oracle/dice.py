"""Random choices of one seed."""

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice(random.Random):
    """A source of choices for one case of a family: the same seed throws the same, on every machine."""

    def __init__(self, family: str, seed: int, case: int) -> None:
        super().__init__(f"{family}/{seed}/{case}")
        self.case = case

    def maybe(self, chance: float) -> bool:
        """True with this probability."""
        return self.random() < chance

    def some(self, among: Sequence[T], low: int = 1, high: int | None = None) -> list[T]:
        """Between `low` and `high` different ones, in random order."""
        high = min(len(among), len(among) if high is None else high)
        return self.sample(list(among), self.randint(min(low, high), high))
