"""A column of values that repeat, kept as small numbers."""

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from bayplan.cache.change_log import Rows

V = TypeVar("V", bound=Hashable)

_SLACK = 64


class InternedColumn(Generic[V]):
    """One value per row, each distinct value stored once; plugins ask once per value instead of once per node.

    `ids` are `(capacity,) int32` places in `values`; place 0 is the value of rows without a node. A value keeps its
    place for as long as the column lives, and values no row has any more stay until the owner builds a new column.
    """

    __slots__ = ("_id_of", "ids", "values")

    def __init__(self, capacity: int, absent: V) -> None:
        self.ids: NDArray[np.int32] = np.zeros(capacity, dtype=np.int32)
        self.values: list[V] = [absent]
        self._id_of: dict[V, int] = {absent: 0}

    def set(self, row: int, value: V) -> None:
        """Give `row` its value."""
        known = self._id_of.get(value)
        if known is None:
            known = self._id_of[value] = len(self.values)
            self.values.append(value)
        self.ids[row] = known

    def id_of(self, value: V) -> int | None:
        """The place of `value`, or None when no row ever had it."""
        return self._id_of.get(value)

    @property
    def crowded(self) -> bool:
        """Whether most values are left over from rows that have others now."""
        return len(self.values) > 2 * len(self.ids) + _SLACK

    def each(self, rows: Rows, answer: Callable[[V], Any], dtype: type[np.generic]) -> NDArray[Any]:
        """`answer(value)` for each row, called once per distinct value among `rows`, `(rows,) dtype`."""
        ids = self.ids[rows]
        if len(ids) == 1:
            return np.array([answer(self.values[ids[0]])], dtype=dtype)
        answers = np.zeros(len(self.values), dtype=dtype)
        for place in np.flatnonzero(np.bincount(ids, minlength=1)).tolist():
            answers[place] = answer(self.values[place])
        result: NDArray[Any] = answers[ids]
        return result
