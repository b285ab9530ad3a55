"""What a claim's requests ask for, checked before the search, with upstream's texts for what cannot be.

Source: D/structured/internal/incubating/allocator_incubating.go, Allocate and validateDeviceRequest.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from bayplan.api.claim_objects import ExactDeviceRequest, ResourceClaim
from bayplan.api.device_objects import DeviceClass, DeviceSelector
from bayplan.api.meta_objects import key_of
from bayplan.api.tolerations import tolerates
from bayplan.devices.capacity import CapacityError, Want
from bayplan.devices.constraints import Constraint
from bayplan.devices.offers import DeviceView, Offer, Reads

MAX_RESULTS: Final = 32
"""How many devices the result of a claim has at most."""
_HINT: Final = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() "
    "for optional fields"
)


class AllocationError(Exception):
    """What ends the whole attempt where no other filter rejects the node; the text is upstream's."""


class Selector(Protocol):
    """A compiled expression; ValueError of `matches` is a run-time error and its text.

    `reads` are full names of attributes, or None when it may read all of them.
    """

    @property
    def reads(self) -> frozenset[str] | None:
        """The attributes that its answer depends on."""

    def matches(self, device: DeviceView) -> bool:
        """Whether the device will do."""


CompileSelector = Callable[[str], Selector]


class Request:
    """One request, or one alternative of a request, ready for the search.

    Attributes:
        names: the request's name, and the one in full, which results have.
        selectors: compiled, each with the text that its errors begin with.
        count: how many devices; of a request for all it is set when these are listed.
    """

    __slots__ = (
        *("_refusals", "_tolerates", "_wants"),
        *("admin", "all", "count", "device_class", "names", "selectors", "text", "wire"),
    )

    def __init__(self, claim: ResourceClaim, wire: ExactDeviceRequest, names: tuple[str, str], bare: str) -> None:
        self.wire = wire
        self.names = names
        self.text = f"claim {key_of(claim.metadata)}, request {bare}"
        self.admin = bool(wire.admin_access)
        self.all = wire.allocation_mode == "All"
        self.count = 0 if self.all else wire.count
        self.selectors: list[tuple[Selector, str]] = []
        self.device_class: DeviceClass | None = None
        self._wants: dict[int, Want | CapacityError] = {}
        self._refusals: dict[int, str] = {}
        self._tolerates: dict[int, bool] = {}

    def want(self, offer: Offer, kind: int) -> Want:
        """What it takes of a device's capacities; one answer for all devices of the kind.

        Raises:
            CapacityError: the request is negative or too large.
        """
        known = self._wants.get(kind)
        if known is None:
            try:
                known = Want(offer.capacity, (self.wire.capacity and self.wire.capacity.requests) or {})
            except CapacityError as error:
                known = error
            self._wants[kind] = known
        if isinstance(known, CapacityError):
            raise CapacityError(str(known))
        return known

    def tolerates(self, offer: Offer, kind: int) -> bool:
        """Whether no taint of the device keeps it away (resourceclaim/devicetoleration.go)."""
        known = self._tolerates.get(kind)
        if known is None:
            tolerations = self.wire.tolerations or ()
            known = self._tolerates[kind] = all(tolerates(tolerations, taint) for taint in offer.taints)
        return known

    def selects(self, offer: Offer, kind: int) -> bool:
        """Whether all selectors of the class and of the request are true of the device.

        Raises:
            AllocationError: a selector failed on it.
        """
        return not self.refused_by(offer, kind)

    def forget(self) -> None:
        """Give up what is known of kinds of devices: the search is over, and the request stays with its result."""
        self._wants, self._refusals, self._tolerates = {}, {}, {}

    def refused_by(self, offer: Offer, kind: int) -> str:
        """The first selector that does not take a device, empty if all take it; one answer for all of the kind.

        Raises:
            AllocationError: a selector failed on it.
        """
        known = self._refusals.get(kind)
        if known is None:
            known = self._refusals[kind] = self._first_refusal(offer)
        return known

    def _first_refusal(self, offer: Offer) -> str:
        wires = [*((self.device_class and self.device_class.spec.selectors) or ()), *(self.wire.selectors or ())]
        for (selector, text), wire in zip(self.selectors, wires, strict=True):
            try:
                if not selector.matches(offer.view):
                    return wire.cel.expression if wire.cel else ""
            except ValueError as error:
                hint = _HINT if "no such key:" in str(error) else ""
                raise AllocationError(f"{text} on device {offer.name}: CEL runtime error: {error}{hint}") from None
        return ""


class ClaimRequests:
    """The requests of a claim, each as its alternatives: one where there is no choice.

    Raises:
        AllocationError: a request is of a kind that nobody knows.
    """

    __slots__ = ("claim", "constraints", "has_choice", "requests")

    def __init__(self, claim: ResourceClaim) -> None:
        self.claim = claim
        self.requests: list[list[Request]] = []
        self.has_choice: list[bool] = []
        self.constraints: list[Constraint] = []
        for wire in claim.spec.devices.requests or ():
            self.has_choice.append(bool(wire.first_available))
            if wire.first_available:
                alternatives = [(sub, (wire.name, f"{wire.name}/{sub.name}"), sub.name) for sub in wire.first_available]
                self.requests.append([Request(claim, *each) for each in alternatives])
            elif wire.exactly is not None:
                self.requests.append([Request(claim, wire.exactly, (wire.name, wire.name), wire.name)])
            else:
                raise AllocationError(f"claim {key_of(claim.metadata)}, request {wire.name}: unknown request type")

    def prepare(
        self, classes: Mapping[str, DeviceClass], compile_selector: CompileSelector, list_all: Callable[[Request], int]
    ) -> None:
        """Check all requests, then the constraints; `list_all` counts the devices of a request for all.

        Raises:
            AllocationError: the first problem.
        """
        text = f"claim {key_of(self.claim.metadata)}"
        total = 0
        for alternatives in self.requests:
            for request in alternatives:
                _prepare(request, text, classes, compile_selector)
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


def reads_of(
    claims: Iterable[ResourceClaim], classes: Mapping[str, DeviceClass], compile_selector: CompileSelector
) -> Reads:
    """The attributes that answers for these claims depend on; what does not compile reads none."""
    reads: set[str] = set()
    for claim in claims:
        for constraint in claim.spec.devices.constraints or ():
            reads.add(constraint.match_attribute or constraint.distinct_attribute or "")
        for request in claim.spec.devices.requests or ():
            wires: Sequence[ExactDeviceRequest | None] = request.first_available or [request.exactly]
            for wire in filter(None, wires):
                device_class = classes.get(wire.device_class_name)
                for selector in (*(wire.selectors or ()), *((device_class and device_class.spec.selectors) or ())):
                    try:
                        compiled = compile_selector(selector.cel.expression) if selector.cel else None
                    except ValueError:
                        compiled = None
                    if compiled is not None:
                        if compiled.reads is None:
                            return None
                        reads |= compiled.reads
    return frozenset(reads)


def _prepare(
    request: Request, claim: str, classes: Mapping[str, DeviceClass], compile_selector: CompileSelector
) -> None:
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
        *_compiled(device_class.spec.selectors, f"class {name}", compile_selector),
        *_compiled(request.wire.selectors, claim, compile_selector),
    ]


class _Broken:
    """A selector that does not compile: it is told on the first device that it is asked about."""

    reads: frozenset[str] | None = frozenset()

    def __init__(self, text: str) -> None:
        self.text = text

    def matches(self, device: DeviceView) -> bool:
        raise AllocationError(self.text)


def _compiled(
    selectors: list[DeviceSelector] | None, owner: str, compile_selector: CompileSelector
) -> Iterator[tuple[Selector, str]]:
    for index, selector in enumerate(selectors or ()):
        text = f"{owner}: selector #{index}"
        if selector.cel is None:
            raise AllocationError(f"{text}: CEL expression empty (unsupported selector type?)")
        try:
            yield compile_selector(selector.cel.expression), text
        except ValueError as error:
            yield _Broken(f"{text}: CEL compile error: {error}"), text
