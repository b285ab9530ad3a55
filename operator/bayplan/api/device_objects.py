"""Devices (resource.k8s.io/v1): classes, slices and taint rules, cut to the fields that decide.

The configuration of a device is its driver's: it is handed on as it came, and nothing here reads it.
"""

from typing import Any

import msgspec

from bayplan.api.meta_objects import Described, Quantity, Struct
from bayplan.api.objects import NodeSelector, Taint


class CELDeviceSelector(Struct, frozen=True):
    """An expression that is true of the devices that will do."""

    expression: str = ""


class DeviceSelector(Struct, frozen=True):
    """What a device must be; `cel` is the only kind there is."""

    cel: CELDeviceSelector | None = None


class OpaqueDeviceConfiguration(Struct, frozen=True):
    """Parameters for a driver, whatever they are."""

    driver: str = ""
    parameters: Any = None


class DeviceClassConfiguration(Struct, frozen=True):
    """Configuration that every device claimed through the class gets."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Struct, frozen=True):
    """Which devices are of the class, and the extended resource that they count as."""

    selectors: list[DeviceSelector] | None = None
    config: list[DeviceClassConfiguration] | None = None
    extended_resource_name: str | None = None


class DeviceClass(Described, frozen=True):
    """A resource.k8s.io/v1 DeviceClass."""

    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceTaint(Taint, frozen=True):
    """A device's repulsion of claims that do not tolerate it."""

    time_added: str | None = None


class DeviceTaintSelector(Struct, frozen=True):
    """Which devices a rule taints; what is not set is any."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Struct, frozen=True):
    """A taint and the devices that have it; without a selector these are none."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(Described, frozen=True):
    """A resource.k8s.io/v1 DeviceTaintRule."""

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()


class DeviceAttribute(Struct, frozen=True):
    """One value, or one list of values, that a driver says of a device; exactly one field is set."""

    integer: int | None = msgspec.field(default=None, name="int")
    boolean: bool | None = msgspec.field(default=None, name="bool")
    string: str | None = None
    version: str | None = None
    ints: list[int] | None = None
    bools: list[bool] | None = None
    strings: list[str] | None = None
    versions: list[str] | None = None


class CapacityRange(Struct, frozen=True):
    """The amounts that may be asked for: from `min` to `max`, in steps."""

    min: Quantity = None
    max: Quantity = None
    step: Quantity = None


class CapacityRequestPolicy(Struct, frozen=True):
    """How much of a capacity a request gets that asks for none, and what it may ask for."""

    default: Quantity = None
    valid_values: list[Quantity] | None = None
    valid_range: CapacityRange | None = None


class DeviceCapacity(Struct, frozen=True):
    """How much a device has of something."""

    value: Quantity = None
    request_policy: CapacityRequestPolicy | None = None


class Counter(Struct, frozen=True):
    """An amount of something that devices share."""

    value: Quantity = None


class CounterSet(Struct, frozen=True):
    """What the devices of a pool share, by name."""

    name: str = ""
    counters: dict[str, Counter] | None = None


class DeviceCounterConsumption(Struct, frozen=True):
    """What a device takes of a counter set while it is allocated."""

    counter_set: str = ""
    counters: dict[str, Counter] | None = None
    compatibility_groups: list[str] | None = None


class Device(Struct, frozen=True):
    """A device that a driver offers."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    consumes_counters: list[DeviceCounterConsumption] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: list[DeviceTaint] | None = None
    binds_to_node: bool | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    allow_multiple_allocations: bool | None = None


class ResourcePool(Struct, frozen=True):
    """What devices belong together, and of how many slices this generation of them consists."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Struct, frozen=True):
    """Devices of a pool, or the counters that they share, and the nodes that reach them."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: list[Device] | None = None
    shared_counters: list[CounterSet] | None = None


class ResourceSlice(Described, frozen=True):
    """A resource.k8s.io/v1 ResourceSlice."""

    spec: ResourceSliceSpec = ResourceSliceSpec()
