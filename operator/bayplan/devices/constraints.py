"""What the devices of a claim have in common, or must not: matchAttribute and distinctAttribute."""

from collections import Counter
from collections.abc import Collection, Iterable

from bayplan.api.claim_objects import DeviceConstraint
from bayplan.devices.offers import Offer, attribute_of


class Constraint:
    """One constraint of a claim while devices are picked and put back, the last one first.

    Source: D/structured/internal/incubating, matchAttributeConstraint and distinctAttributeConstraint.
    """

    __slots__ = ("_distinct", "_requests", "_values", "attribute")

    def __init__(self, wire: DeviceConstraint) -> None:
        self._distinct = wire.match_attribute is None
        self.attribute = wire.match_attribute or wire.distinct_attribute or ""
        self._requests: Collection[str] = frozenset(wire.requests or ())
        self._values: list[tuple[str, object]] = []

    def concerns(self, names: tuple[str, str]) -> bool:
        """Whether it is about a request with this name, and with this one in full."""
        return not self._requests or names[0] in self._requests or names[1] in self._requests

    def add(self, offer: Offer) -> bool:
        """Take a device in, if it goes with those that are in."""
        value = attribute_of(offer, self.attribute)
        if value is None:
            return False
        if self._values:
            is_list = value[0] == "list"
            if is_list or (value in self._values if self._distinct else value != self._values[0]):
                return False
        self._values.append(value)
        return True

    def remove(self) -> None:
        """Put the last device back."""
        self._values.pop()

    def most(self, offers: Iterable[Offer]) -> int:
        """How many of these devices go together at most: those with one value, or one of each value."""
        values = [value for offer in offers if (value := attribute_of(offer, self.attribute)) is not None]
        lists = sum(kind == "list" for kind, _ in values)
        counts = Counter(value for value in values if value[0] != "list")
        return len(counts) + lists if self._distinct else max(*counts.values(), min(lists, 1), 0)
