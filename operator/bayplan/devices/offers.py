"""The devices of one slice, made ready for searches: with the taints of rules, and with what makes devices alike."""

import itertools
from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from bayplan.api.device_objects import (
    Device,
    DeviceAttribute,
    DeviceTaintRule,
    DeviceTaintSelector,
    ResourceSlice,
    ResourceSliceSpec,
)
from bayplan.api.objects import Taint
from bayplan.api.quantity import exact_nano
from bayplan.cel.errors import EvaluationError
from bayplan.cel.selector import versions
from bayplan.devices.allocated_state import PoolId

Reads = frozenset[str] | None
"""The full names of the attributes that selectors and constraints read; None is all of them."""
CounterName = tuple[str, str]
"""A counter set of a pool and one of its counters."""

_MAX_KINDS: Final = 100_000
_MAX_READS: Final = 8
_REPELLING: Final = ("NoSchedule", "NoExecute")
_encode = msgspec.msgpack.Encoder(order="deterministic").encode


class Kinds:
    """Numbers for contents: equal contents have one number. A number is never given to a second content.

    When there are too many, all are forgotten: equal contents may then have two numbers, which only costs time.
    """

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._rows: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._next = itertools.count()

    def number(self, content: Hashable) -> int:
        """The number of a content, which is hashable."""
        known = self._numbers.get(content)
        if known is None:
            if len(self._numbers) >= _MAX_KINDS:
                self._numbers.clear()
            known = self._numbers[content] = self.fresh()
        return known

    def row(self, contents: Iterable[Hashable]) -> tuple[int, ...]:
        """The numbers of contents; equal rows are one tuple, so that alike slices keep one."""
        if len(self._rows) >= _MAX_KINDS:
            self._rows.clear()
        row = tuple(map(self.number, contents))
        return self._rows.setdefault(row, row)

    def fresh(self) -> int:
        """A number for what is like nothing else."""
        return next(self._next)


class Offer:
    """One device that a pool offers; `consumes` are amounts of the pool's counters in billionths."""

    __slots__ = ("capacity", "consumes", "multiple", "slice", "taints", "wire")

    def __init__(self, wire: Device, of: "SliceOffers") -> None:
        self.wire = wire
        self.slice = of
        self.multiple = bool(wire.allow_multiple_allocations)
        self.capacity = wire.capacity or {}
        self.taints = [taint for taint in of.taints_of(wire) if taint.effect in _REPELLING]
        self.consumes = consumed_by(wire)

    @property
    def name(self) -> str:
        """The device as texts name it."""
        return f"{self.slice.spec.driver}/{self.slice.spec.pool.name}/{self.wire.name}"


def consumed_by(device: Device) -> list[tuple[CounterName, int]]:
    """Return what a device takes of the counters of its pool, in billionths.

    Raises:
        QuantityError: an amount cannot be read, so that the pool is invalid.
    """
    return [
        ((each.counter_set, name), exact_nano(counter.value))
        for each in device.consumes_counters or ()
        for name, counter in (each.counters or {}).items()
    ]


class SliceOffers:
    """A ResourceSlice with the rules for taints that concern it; pools are made of these.

    What is worked out of a slice is kept as long as slice and rules stay the same.

    Attributes:
        ignored: nothing is taken from it, and its pool is incomplete.
        where: what says for which nodes the devices are: the slice, or each of them.
        binds: a device has binding conditions.
        counts: a device consumes counters.
    """

    __slots__ = (
        *("_kinds", "_offers", "binds", "counts", "devices", "ignored"),
        *("name", "pool", "rules", "spec", "where", "wire"),
    )

    def __init__(self, wire: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> None:
        self.wire = wire
        self.rules = rules
        self.spec = wire.spec
        self.name = wire.metadata.name
        self.pool: PoolId = (wire.spec.driver, wire.spec.pool.name)
        self.devices: Sequence[Device] = wire.spec.devices or ()
        self.where: Sequence[Device | ResourceSliceSpec] = (
            self.devices if wire.spec.per_device_node_selection else (wire.spec,)
        )
        consumed = [device.consumes_counters for device in self.devices if device.consumes_counters]
        self.counts = bool(consumed)
        # A scheduler that cannot check compatibility groups leaves such slices alone, so their pool is incomplete.
        self.ignored = any(each.compatibility_groups for counters in consumed for each in counters)
        self.binds = any(device.binding_conditions is not None for device in self.devices)
        self._offers: dict[int, Offer] = {}
        self._kinds: dict[Reads, tuple[int, ...]] = {}

    def offer(self, index: int) -> Offer:
        """The device at this place of the slice."""
        known = self._offers.get(index)
        if known is None:
            known = self._offers[index] = Offer(self.devices[index], self)
        return known

    def taints_of(self, device: Device) -> Iterable[Taint]:
        """The device's own taints, then those of the rules that select it (resourceslice/tracker)."""
        yield from device.taints or ()
        for rule in self.rules:
            selector = rule.spec.device_selector
            if selector is not None and selector.device in (None, device.name):
                yield rule.spec.taint

    def kinds(self, reads: Reads, kinds: Kinds) -> tuple[int, ...]:
        """The kind of each device; slices for which they are the same answer alike.

        Devices of one kind differ in nothing that a search with these `reads` depends on, but their names, the node
        that they are for and who has them.
        """
        known = self._kinds.get(reads)
        if known is None:
            if len(self._kinds) >= _MAX_READS:
                self._kinds.clear()
            contents = (_encode(self._content(device, reads)) for device in self.devices)
            known = self._kinds[reads] = kinds.row(contents)
        return known

    def _content(self, device: Device, reads: Reads) -> tuple[object, ...]:
        attributes = device.attributes or {}
        if reads is not None:
            driver = self.spec.driver
            attributes = {
                name: value
                for name, value in attributes.items()
                if (name if "/" in name else f"{driver}/{name}") in reads or not _has_value(value)
            }
        return (
            self.spec.driver,
            attributes,
            device.capacity,
            device.consumes_counters,
            [(taint.key, taint.value, taint.effect) for taint in self.taints_of(device)],
            bool(device.allow_multiple_allocations),
        )


def _has_value(attribute: DeviceAttribute) -> bool:
    """Whether expressions can read the attribute; for a device that has one without a value all of them fail."""
    return all(map(_is_version, attribute.versions or (() if attribute.version is None else (attribute.version,))))


@lru_cache(maxsize=1024)
def _is_version(text: str) -> bool:
    try:
        return bool(versions([text], ""))
    except EvaluationError:
        return False


def rules_for(rules: Iterable[DeviceTaintRule], spec_driver: str, pool: str) -> tuple[DeviceTaintRule, ...]:
    """The rules that select devices of this pool; a rule without a selector selects none."""

    def concerns(selector: DeviceTaintSelector | None) -> bool:
        return selector is not None and selector.driver in (None, spec_driver) and selector.pool in (None, pool)

    return tuple(rule for rule in rules if concerns(rule.spec.device_selector))


def attribute_of(offer: Offer, full_name: str) -> tuple[str, object] | None:
    """The kind and the value of an attribute by its full name; None where the device has none.

    A name without a domain has the driver's. A list has the kind "list" and equals nothing.
    """
    attributes = offer.wire.attributes or {}
    found = attributes.get(full_name)
    if found is None:
        domain, slash, bare = full_name.partition("/")
        found = attributes.get(bare) if slash and domain == offer.slice.spec.driver else None
    if found is None:
        return None
    for kind in ("string", "integer", "boolean", "version"):
        value = getattr(found, kind)
        if value is not None:
            return kind, value
    return "list", None
