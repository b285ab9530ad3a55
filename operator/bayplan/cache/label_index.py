"""Finds the selectors that may match some labels without trying all others."""

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from bayplan.api.meta_objects import LabelSelector
from bayplan.api.selectors import Labels

T = TypeVar("T", bound=Hashable)

LabelPairs = tuple[tuple[str, str], ...]
"""Labels as pairs of key and value, all of one key."""


def required_labels(selector: LabelSelector | None) -> LabelPairs | None:
    """Return pairs of one key, one of which all labels have that `selector` matches; None where no label is needed."""
    if selector is None:
        return ()
    if selector.match_labels:
        return (next(iter(selector.match_labels.items())),)
    for each in selector.match_expressions or ():
        if each.operator == "In":
            return tuple((each.key, value) for value in dict.fromkeys(each.values or ()))
    return None


class LabelIndex(Generic[T]):
    """Items with a label selector each, by a label that the selector needs; of affinity terms and of budgets."""

    def __init__(self) -> None:
        # Dicts keep the order the items came in.
        self._by_label: dict[tuple[str, str], dict[T, None]] = {}
        self._free: dict[T, None] = {}

    def add(self, item: T, needed: LabelPairs | None) -> None:
        """Take in an item; `needed` is as `required_labels` gives it."""
        if needed is None:
            self._free[item] = None
            return
        for label in needed:
            self._by_label.setdefault(label, {})[item] = None

    def remove(self, item: T, needed: LabelPairs | None) -> None:
        """Forget an item that was added with the same `needed`."""
        if needed is None:
            del self._free[item]
            return
        for label in needed:
            del self._by_label[label][item]
            if not self._by_label[label]:
                del self._by_label[label]

    def that_may_match(self, labels: Labels | None) -> Iterator[T]:
        """Give the items whose selectors have to be compared with these labels, each once: no other can match."""
        yield from self._free
        for label in (labels or {}).items():
            yield from self._by_label.get(label, ())
