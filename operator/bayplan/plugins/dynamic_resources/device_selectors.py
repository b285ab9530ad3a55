"""Expressions of classes and claims, asked about devices as the allocator has them."""

from typing import Any

from bayplan.api.device_objects import DeviceAttribute
from bayplan.cel import CompileError, Device, EvaluationError, Quantity, compile_selector, versions
from bayplan.devices.offers import DeviceView


class DeviceSelector:
    """A compiled expression; the allocator relies on it.

    Attributes:
        reads: The full names of the attributes that its answer depends on; None when these may be any.
    """

    def __init__(self, expression: str) -> None:
        try:
            self._selector = compile_selector(expression)
        except CompileError as error:
            raise ValueError(str(error)) from error
        paths = self._selector.paths
        self.reads: frozenset[str] | None = None
        if paths is not None:
            self.reads = frozenset("/".join(path[1:]) for path in paths if path[0] == "attributes")

    def matches(self, device: DeviceView) -> bool:
        """Return whether the device will do.

        Raises:
            ValueError: The expression has no value for it; the text is kube-scheduler's.
        """
        try:
            return self._selector.matches(_as_read(device))
        except EvaluationError as error:
            raise ValueError(str(error)) from error


def _as_read(device: DeviceView) -> Device:
    try:
        attributes = {name: _value(name, attribute) for name, attribute in device.attributes.items()}
        capacity = {name: Quantity.parse(str(amount)) for name, amount in device.capacity.items()}
    except EvaluationError as error:
        return Device(device.driver, problem=str(error))
    return Device(device.driver, attributes, capacity, allow_multiple_allocations=device.allow_multiple_allocations)


def _value(name: str, attribute: DeviceAttribute) -> Any:  # noqa: ANN401  of any kind that attributes have
    """Return the value, or the values, of an attribute.

    Raises:
        EvaluationError: A version is none.
    """
    if attribute.version is not None:
        return versions([attribute.version], name)[0]
    if attribute.versions is not None:
        return versions(attribute.versions, name)
    one = (attribute.string, attribute.integer, attribute.boolean, attribute.strings, attribute.ints, attribute.bools)
    return next((each for each in one if each is not None), None)
