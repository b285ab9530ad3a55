"""Which devices of a node a request can have, found out as the search comes to them."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from bayplan.devices.allocated_state import AllocatedState
from bayplan.devices.capacity import CapacityError, Want
from bayplan.devices.offers import Offer
from bayplan.devices.pools import Pool
from bayplan.devices.requests import AllocationError, Request

if TYPE_CHECKING:
    from bayplan.devices.search import Search

_NO_AMOUNTS: Final[dict[str, int]] = {}


class Slot:
    """A device on the node: what others have of it, and what this attempt took.

    Attributes:
        place: pool, slice and device by their numbers, for the same device of an alike node.
        taken: by which claims of the attempt, whole.
        taking, sharing: how much of it in shares, and in how many.
    """

    __slots__ = ("held", "kind", "offer", "place", "pool", "shared", "sharing", "taken", "taking", "used")

    def __init__(
        self, offer: Offer, kind: int, pool: Pool, place: tuple[int, int, int], allocated: AllocatedState
    ) -> None:
        self.offer = offer
        self.kind = kind
        self.pool = pool
        self.place = place
        usage = allocated.usage(pool.id).get(offer.wire.name)
        self.held = usage is not None and usage.holders > 0
        self.shared = usage is not None and usage.shares > 0
        self.used = usage.consumed if usage is not None else _NO_AMOUNTS
        self.taken: set[int] = set()
        self.taking: dict[str, int] = {}
        self.sharing = 0

    def take(self, claim: int, want: Want, sign: int) -> None:
        """Take it for a claim of the attempt, or with a negative sign put it back."""
        if self.offer.multiple:
            self.sharing += sign
            for name, (amount, _) in want.amounts.items():
                self.taking[name] = self.taking.get(name, 0) + sign * amount
        elif sign > 0:
            self.taken.add(claim)
        else:
            self.taken.discard(claim)

    @property
    def alike(self) -> object:
        """Slots for which this is equal are interchangeable, as long as the attempt took nothing of them."""
        pool = self.pool.id if self.offer.consumes else None
        return self.kind, pool, self.shared, tuple(sorted(self.used.items())) if self.used else None


class Pick(NamedTuple):
    """A device that a request got, and how much of it."""

    request: Request
    slot: Slot
    want: Want


Order = Callable[[Request, Sequence[Slot]], Sequence[Slot]]
"""Puts the slots that a request can have into another order."""


class Candidates:
    """The devices that a request can have on a node, in the order in which they are tried.

    A device on which a selector or the capacity fails is among them, with the error: it ends the attempt when the
    search comes to it. A request for all devices lists used ones too, and raises what fails at once. With an `order`
    all are listed first, and those that fail come last.
    """

    __slots__ = ("_complete", "_fails", "_items", "_order", "_request", "_scanned", "_search", "_slots")

    def __init__(self, search: "Search", request: Request, order: Order | None = None) -> None:
        self._search = search
        self._request = request
        self._order = None if request.all or request.admin else order
        self._items: list[tuple[Slot, AllocationError | None]] = []
        self._slots = search.slots()
        self._scanned = 0
        self._complete = self._fails = False

    def at(self, place: int) -> tuple[Slot, AllocationError | None] | None:
        """The candidate at this place; None after the last."""
        while (place >= len(self._items) or self._order is not None) and not self._complete:
            self._scan()
        return self._items[place] if place < len(self._items) else None

    def look_at(self, devices: int) -> None:
        """Look at the first devices of the node, so that what fails on them is raised."""
        while self._scanned < devices:
            self._scan()

    def count(self) -> int:
        """How many there are."""
        while not self._complete:
            self._scan()
        return len(self._items)

    @property
    def fails(self) -> bool:
        """Whether any of them would end the attempt."""
        self.count()
        return self._fails

    def slots(self) -> Iterator[Slot]:
        """All of them, without the errors."""
        self.count()
        return (slot for slot, _ in self._items)

    @property
    def exclusive(self) -> frozenset[tuple[int, int, int]] | None:
        """Where the candidates are, if each can be taken only once in an attempt."""
        self.count()
        if any(slot.offer.multiple for slot, _ in self._items):
            return None
        return frozenset(slot.place for slot, _ in self._items)

    def _scan(self) -> None:
        slot = next(self._slots, None)
        if slot is None:
            self._complete = True
            if self._order is not None:
                failing = [each for each in self._items if each[1] is not None]
                ordered = self._order(self._request, [each for each, error in self._items if error is None])
                self._items = [*((each, None) for each in ordered), *failing]
            return
        self._scanned += 1
        self._search.look()
        if slot.held and not self._request.admin and not self._request.all:
            return
        try:
            if self._will_do(slot):
                self._items.append((slot, None))
        except AllocationError as error:
            if self._request.all:
                raise
            self._fails = True
            self._items.append((slot, error))

    def _will_do(self, slot: Slot) -> bool:
        request, offer = self._request, slot.offer
        if request.refused_by(offer, slot.kind, self._search.check_time) or not self._search.is_for_node(slot):
            return False
        try:
            want = request.want(offer, slot.kind)
        except CapacityError as error:
            name = offer.wire.name if request.all else offer.name
            raise AllocationError(f"{request.text}: checking capacity for device {name}: {error}") from None
        if request.all:
            return want.fits_beside(_NO_AMOUNTS, _NO_AMOUNTS)
        if not want.fits_beside(slot.used, _NO_AMOUNTS):
            return False
        return request.tolerates(offer, slot.kind) and self._search.may_book(slot)
