"""What a claim's requests and constraints ask for, checked before the search, with upstream's texts for what cannot be.

Source: D/structured/internal/incubating/allocator_incubating.go, Allocate and validateDeviceRequest.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from bayplan.api.claim_objects import DeviceConstraint, ExactDeviceRequest, ResourceClaim
from bayplan.api.device_objects import DeviceClass, DeviceSelector
from bayplan.api.meta_objects import key_of
from bayplan.api.tolerations import tolerates
from bayplan.cel.errors import CompileError, EvaluationError
from bayplan.devices.capacity import Want
from bayplan.devices.device_selectors import attributes_read, compiled, view_of
from bayplan.devices.offers import Offer, Reads, attribute_of

MAX_RESULTS: Final = 32
"""How many devices the result of a claim has at most."""
_HINT: Final = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() "
    "for optional fields"
)


class AllocationError(Exception):
    """What ends the whole attempt where no other filter rejects the node; the text is upstream's."""


class Request:
    """One request, or one alternative of a request, ready for the search.

    Attributes:
        names: the request's name, and the one in full, which results have.
        is_choice: it is one of several alternatives, or could be.
        selectors: expressions, each with the text that its errors begin with.
        count: how many devices; of a request for all it is set when these are listed.
    """

    __slots__ = (
        *("_refusals", "_tolerates", "_wants"),
        *("admin", "all", "count", "device_class", "is_choice", "names", "selectors", "text", "wire"),
    )

    def __init__(self, claim: ResourceClaim, wire: ExactDeviceRequest, names: tuple[str, str]) -> None:
        self.wire = wire
        self.names = names
        self.is_choice = names[0] != names[1]
        self.text = f"claim {key_of(claim.metadata)}, request {names[1].rpartition('/')[2]}"
        self.admin = bool(wire.admin_access)
        self.all = wire.allocation_mode == "All"
        self.count = 0 if self.all else wire.count
        self.selectors: list[tuple[str, str]] = []
        self.device_class = DeviceClass()
        self._wants: dict[int, Want] = {}
        self._refusals: dict[int, str] = {}
        self._tolerates: dict[int, bool] = {}

    def want(self, offer: Offer, kind: int) -> Want:
        """What it takes of a device's capacities; one answer for all devices of the kind.

        Raises:
            CapacityError: the request is negative or too large.
        """
        known = self._wants.get(kind)
        if known is None:
            asked = (self.wire.capacity and self.wire.capacity.requests) or {}
            known = self._wants[kind] = Want(offer.capacity, asked)
        return known

    def tolerates(self, offer: Offer, kind: int) -> bool:
        """Whether no taint of the device keeps it away (resourceclaim/devicetoleration.go)."""
        known = self._tolerates.get(kind)
        if known is None:
            tolerations = self.wire.tolerations or ()
            known = self._tolerates[kind] = all(tolerates(tolerations, taint) for taint in offer.taints)
        return known

    def forget(self) -> None:
        """Give up what is known of kinds of devices: the search is over, and the request stays with its result."""
        self._wants, self._refusals, self._tolerates = {}, {}, {}

    def refused_by(self, offer: Offer, kind: int, before: Callable[[], None] = lambda: None) -> str:
        """The first selector that does not take a device, empty if all take it; one answer for all of the kind.

        `before` is called before each that has to be worked out, which may take part of a second.

        Raises:
            AllocationError: a selector failed on it.
        """
        known = self._refusals.get(kind)
        if known is None:
            known = self._refusals[kind] = self._first_refusal(offer, before)
        return known

    def _first_refusal(self, offer: Offer, before: Callable[[], None]) -> str:
        device = view_of(offer) if self.selectors else None
        for expression, text in self.selectors:
            before()
            try:
                if device is not None and not compiled(expression).matches(device):
                    return expression
            except CompileError as error:
                raise AllocationError(f"{text}: CEL compile error: {error}") from None
            except EvaluationError as error:
                hint = _HINT if "no such key:" in str(error) else ""
                raise AllocationError(f"{text} on device {offer.name}: CEL runtime error: {error}{hint}") from None
        return ""


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


class ClaimRequests:
    """The requests of a claim, each as its alternatives: one where there is no choice.

    Raises:
        AllocationError: a request is of a kind that nobody knows.
    """

    __slots__ = ("claim", "constraints", "requests")

    def __init__(self, claim: ResourceClaim) -> None:
        self.claim = claim
        self.requests: list[list[Request]] = []
        self.constraints: list[Constraint] = []
        for wire in claim.spec.devices.requests or ():
            if not wire.alternatives:
                raise AllocationError(f"claim {key_of(claim.metadata)}, request {wire.name}: unknown request type")
            self.requests.append([Request(claim, each, (wire.name, name)) for name, each in wire.alternatives])

    def prepare(self, classes: Mapping[str, DeviceClass], list_all: Callable[[Request], int]) -> None:
        """Check all requests, then the constraints; `list_all` counts the devices of a request for all.

        Raises:
            AllocationError: the first problem.
        """
        text = f"claim {key_of(self.claim.metadata)}"
        total = 0
        for alternatives in self.requests:
            for request in alternatives:
                _prepare(request, text, classes)
                if request.all:
                    request.count = list_all(request)
            least = min(request.count for request in alternatives)
            if least > MAX_RESULTS - total:
                raise AllocationError(
                    f"{text}, request {alternatives[0].names[0]}: adding {least} devices exceeds the claim limit of "
                    f"{MAX_RESULTS}, with {total} already accounted for"
                )
            total += least
        for index, constraint in enumerate(self.claim.spec.devices.constraints or ()):
            if constraint.match_attribute is None and constraint.distinct_attribute is None:
                raise AllocationError(f"{text}, constraint #{index}: empty constraint (unsupported constraint type?)")
            self.constraints.append(Constraint(constraint))


def reads_of(claims: Iterable[ResourceClaim], classes: Mapping[str, DeviceClass]) -> Reads:
    """The attributes that answers for these claims depend on."""
    reads: set[str] = set()
    for claim in claims:
        for constraint in claim.spec.devices.constraints or ():
            reads.add(constraint.match_attribute or constraint.distinct_attribute or "")
        for request in claim.spec.devices.requests or ():
            for _, wire in request.alternatives:
                device_class = classes.get(wire.device_class_name)
                for selector in (*(wire.selectors or ()), *((device_class and device_class.spec.selectors) or ())):
                    read = attributes_read(selector.cel.expression) if selector.cel else frozenset()
                    if read is None:
                        return None
                    reads |= read
    return frozenset(reads)


def _prepare(request: Request, claim: str, classes: Mapping[str, DeviceClass]) -> None:
    for index, selector in enumerate(request.wire.selectors or ()):
        if selector.cel is None:
            raise AllocationError(
                f"{request.text}, selector #{index}: CEL expression empty (unsupported selector type?)"
            )
    name = request.wire.device_class_name
    if not name:
        raise AllocationError(f"{request.text}: missing device class name (unsupported request type?)")
    device_class = classes.get(name)
    if device_class is None:
        raise AllocationError(
            f'{request.text}: could not retrieve device class {name}: deviceclass.resource.k8s.io "{name}" not found'
        )
    if request.wire.allocation_mode not in ("ExactCount", "All"):
        raise AllocationError(f"{request.text}: unsupported count mode {request.wire.allocation_mode}")
    request.device_class = device_class
    request.selectors = [
        *_expressions(device_class.spec.selectors, f"class {name}"),
        *_expressions(request.wire.selectors, claim),
    ]


def _expressions(selectors: list[DeviceSelector] | None, owner: str) -> Iterator[tuple[str, str]]:
    for index, selector in enumerate(selectors or ()):
        text = f"{owner}: selector #{index}"
        if selector.cel is None:
            raise AllocationError(f"{text}: CEL expression empty (unsupported selector type?)")
        yield selector.cel.expression, text
