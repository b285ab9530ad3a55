"""Whether devices are ready for the pod, where their drivers have binds wait for that (upstream: BindingConditions)."""

from collections.abc import Callable, Generator, Sequence
from typing import ClassVar

from bayplan.api.claim_objects import AllocationResult, ResourceClaim
from bayplan.api.meta_objects import key_of, parse_time
from bayplan.config.errors import quote
from bayplan.framework.plugin_calls import PluginCalls
from bayplan.framework.status import EffectError, Notice, wait_until


class DeviceFailedError(EffectError):
    """A device will not be ready; `ended` is how the wait for it counts."""

    ended: ClassVar[str] = "failure"


class DeviceOverdueError(DeviceFailedError):
    """A device is not ready in time."""

    ended: ClassVar[str] = "timeout"


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


def wait_for_devices(
    claims: Sequence[ResourceClaim],
    node_name: str,
    get: Callable[[str], ResourceClaim | None],
    *,
    clock: Callable[[], float],
    seconds: float,
    calls: PluginCalls,
) -> Generator[Notice | float, object, None]:
    """Have a conversation wait until the devices of all claims are ready; `calls` receives how long that took.

    Raises:
        EffectError: one fails, takes longer than so many `seconds`, or its claim is gone.
    """
    allocations = [claim.status.allocation for claim in claims if claim.status.allocation is not None]
    if not any(map(waits_for_devices, allocations)):
        return

    def is_ready(key: str) -> bool:
        claim = get(key)
        if claim is None:
            raise EffectError(f'could not find ResourceClaim "{key}"')
        ready = are_ready(claim)
        if not ready and is_overdue(claim, seconds, clock()):
            raise DeviceOverdueError(f"device binding timeout: claim={claim.metadata.name}")
        return ready

    keys = [key_of(claim.metadata) for claim in claims]
    text = f"waiting for binding conditions for device on node {node_name}"
    yield Notice("Normal", "BindingConditionsPending", "Scheduling", text)
    started, ended = clock(), "error"
    try:
        yield from wait_until(lambda: all(map(is_ready, keys)), seconds, "device binding timeout", DeviceOverdueError)
        ended = "success"
    except DeviceFailedError as error:
        ended = error.ended
        raise
    finally:
        results = [each for allocation in allocations for each in allocation.devices.results or ()]
        conditional = [each.driver for each in results if each.binding_conditions]
        calls.devices_awaited(ended, clock() - started, [each.driver for each in results], conditional)
