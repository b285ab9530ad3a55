"""Expressions of classes and claims, and devices as these read them."""

from typing import Any, Final

from bayplan.api.device_objects import DeviceAttribute
from bayplan.cel.errors import CompileError, EvaluationError
from bayplan.cel.kubernetes_types import Quantity
from bayplan.cel.selector import Device, Selector, versions
from bayplan.devices.offers import Offer, Reads

_MOST_LETTERS: Final = 2**18


class _Selectors:
    """Keeps compiled expressions until these have so many letters, each of which takes some hundred bytes.

    Of one that does not compile it keeps why: each attempt of a pod asks again.
    """

    def __init__(self) -> None:
        self._known: dict[str, Selector | str] = {}
        self._letters = 0

    def get(self, expression: str) -> Selector:
        """Return the selector that an expression is.

        Raises:
            CompileError: It is none.
        """
        found = self._known.get(expression)
        if found is None:
            try:
                found = Selector(expression)
            except CompileError as error:
                found = str(error)
            if self._letters + len(expression) > _MOST_LETTERS:
                self._known, self._letters = {}, 0
            self._known[expression] = found
            self._letters += len(expression)
        if isinstance(found, str):
            raise CompileError(found)
        return found


compiled: Final = _Selectors().get
"""Returns the selector that an expression is; all searches share it."""


def attributes_read(expression: str) -> Reads:
    """Return the full names of the attributes that its answer depends on; what does not compile reads none."""
    try:
        paths = compiled(expression).paths
    except CompileError:
        return frozenset()
    return None if paths is None else frozenset("/".join(path[1:]) for path in paths if path[0] == "attributes")


def view_of(offer: Offer) -> Device:
    """Return a device as expressions read it; where a version is none, no expression has a value for it."""
    driver = offer.slice.spec.driver
    try:
        attributes = {name: _value(name, each) for name, each in (offer.wire.attributes or {}).items()}
        capacity = {name: Quantity.parse(str(each.value)) for name, each in offer.capacity.items()}
    except EvaluationError as error:
        return Device(driver, problem=str(error))
    return Device(driver, attributes, capacity, allow_multiple_allocations=offer.multiple)


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
