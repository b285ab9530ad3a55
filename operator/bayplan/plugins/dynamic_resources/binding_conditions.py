"""Whether devices are ready for the pod, where their drivers have binds wait for that (upstream: BindingConditions)."""

from bayplan.api.claim_objects import AllocationResult, ResourceClaim
from bayplan.api.meta_objects import parse_time
from bayplan.config.errors import quote
from bayplan.framework.status import EffectError


class DeviceFailedError(EffectError):
    """A device will not be ready."""


class DeviceOverdueError(EffectError):
    """A device is not ready in time."""


def waits_for_devices(allocation: AllocationResult) -> bool:
    """Return whether a device has to be made ready before a bind."""
    return any(each.binding_conditions for each in allocation.devices.results or ())


def are_ready(claim: ResourceClaim) -> bool:
    """Return whether all devices of the claim are ready.

    Raises:
        DeviceFailedError: one says that it will not be.
    """
    if claim.status.allocation is None:
        return False
    told = {(each.driver, each.pool, each.device): each.conditions for each in reversed(claim.status.devices or ())}
    for result in claim.status.allocation.devices.results or ():
        if not result.binding_conditions:
            continue
        conditions = told.get((result.driver, result.pool, result.device)) or ()
        true = {each.type: each for each in conditions if each.status == "True"}
        if failed := next((true[each] for each in result.binding_failure_conditions or () if each in true), None):
            text = f"claim={claim.metadata.name}, reason={failed.reason}, message={quote(failed.message)}"
            raise DeviceFailedError(f"device binding failed: {text}")
        if not true.keys() >= set(result.binding_conditions):
            return False
    return True


def is_overdue(claim: ResourceClaim, timeout_seconds: float, now: float) -> bool:
    """Return whether devices that have to be made ready were allocated longer ago than they may take."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None or not waits_for_devices(allocation):
        return False
    try:
        return parse_time(allocation.allocation_timestamp) + timeout_seconds < now
    except ValueError:
        return False


def is_unusable(claim: ResourceClaim, timeout_seconds: float, now: float) -> bool:
    """Return whether a device of the claim failed, or has not become ready in time."""
    try:
        return not are_ready(claim) and is_overdue(claim, timeout_seconds, now)
    except DeviceFailedError:
        return True
