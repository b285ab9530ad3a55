"""Claims on devices (resource.k8s.io/v1 ResourceClaim): what is asked for, and what was allocated."""

import msgspec

from bayplan.api.device_objects import DeviceSelector, OpaqueDeviceConfiguration
from bayplan.api.meta_objects import Annotations, Described, ObjectMeta, Quantity, Struct
from bayplan.api.objects import Condition, NodeSelector, Toleration


class DeviceToleration(Toleration, frozen=True):
    """Which taints of devices a request puts up with; it is copied into the result."""


class CapacityRequirements(Struct, frozen=True):
    """How much of its capacities a device must have, or have left."""

    requests: dict[str, Quantity] | None = None


class ExactDeviceRequest(Struct, frozen=True):
    """One or more devices of a class."""

    device_class_name: str = ""
    selectors: list[DeviceSelector] | None = None
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] | None = None
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(ExactDeviceRequest, frozen=True):
    """One alternative of a request; it has no `admin_access`."""

    name: str = ""


class DeviceRequest(Struct, frozen=True):
    """What is asked for: `exactly` that, or the first alternative that there is."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: list[DeviceSubRequest] | None = None

    @property
    def alternatives(self) -> list[tuple[str, ExactDeviceRequest]]:
        """What may be given for it, by the names in full that results have; nothing of a kind that nobody knows."""
        if self.first_available:
            return [(f"{self.name}/{each.name}", each) for each in self.first_available]
        return [] if self.exactly is None else [(self.name, self.exactly)]


class DeviceConstraint(Struct, frozen=True):
    """What the devices of some requests, or of all, have in common or must not."""

    requests: list[str] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(Struct, frozen=True):
    """Configuration for the devices of some requests, or of all."""

    requests: list[str] | None = None
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Struct, frozen=True):
    """What a claim asks for."""

    requests: list[DeviceRequest] | None = None
    constraints: list[DeviceConstraint] | None = None
    config: list[DeviceClaimConfiguration] | None = None


class ResourceClaimSpec(Struct, frozen=True):
    """What a claim asks for, which never changes."""

    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(Struct, frozen=True):
    """A device, or a share of one, that a request got; `request` is `name`, or `name/alternative`."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, Quantity] | None = None


class DeviceAllocationConfiguration(Struct, frozen=True):
    """Configuration for the devices of some requests, from the class or from the claim."""

    source: str = ""
    requests: list[str] | None = None
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(Struct, frozen=True):
    """The devices that a claim got, in the order they were picked, and their configuration."""

    results: list[DeviceRequestAllocationResult] | None = None
    config: list[DeviceAllocationConfiguration] | None = None


class AllocationResult(Struct, frozen=True):
    """What a claim got, and from which nodes it can be used; without a selector from all."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(Struct, frozen=True):
    """A pod that may use the claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(Struct, frozen=True):
    """What a driver says of a device that is allocated."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: list[Condition] | None = None


class ResourceClaimStatus(Struct, frozen=True):
    """What a claim got, and who may use it."""

    allocation: AllocationResult | None = None
    reserved_for: list[ResourceClaimConsumerReference] | None = None
    devices: list[AllocatedDeviceStatus] | None = None


class ClaimAnnotations(Annotations, frozen=True):
    """The annotation of a claim that stands for the extended resources of a pod."""

    extended_resource_claim: str | None = msgspec.field(
        default=None, name="resource.kubernetes.io/extended-resource-claim"
    )


class ClaimMeta(ObjectMeta, frozen=True):
    """The metadata of a claim, with what keeps it from vanishing while it is allocated."""

    generate_name: str = ""
    finalizers: list[str] | None = None
    annotations: ClaimAnnotations | None = None


class ResourceClaim(Struct, frozen=True):
    """A resource.k8s.io/v1 ResourceClaim."""

    metadata: ClaimMeta = ClaimMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(Struct, frozen=True):
    """The claim that each pod gets."""

    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Described, frozen=True):
    """A resource.k8s.io/v1 ResourceClaimTemplate: a controller makes a claim of it for each pod that names it."""

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()
