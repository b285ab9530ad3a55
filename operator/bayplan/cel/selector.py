"""Selectors of devices: expressions that were compiled once and are asked for many devices, and what these are."""

from typing import Any, Final

from bayplan.cel.closures import FIRST_VARIABLE
from bayplan.cel.compiler import Compiler
from bayplan.cel.errors import EvaluationError, StoppedError
from bayplan.cel.kubernetes_types import Quantity, Semver
from bayplan.cel.parser import parse
from bayplan.cel.values import Domains, kind_of

MOST_STEPS: Final = 1_000_000
"""resource.k8s.io/v1 CELSelectorExpressionMaxCost. A step is a node of the expression, which costs 1 upstream, too."""

_UNCONVERTED: Final = {
    "string": "unsupported native conversion from string to 'bool'",
    "int": "unsupported type conversion from 'int' to bool",
    "uint": "unsupported type conversion from 'uint' to bool",
    "double": "type conversion error from Double to 'bool'",
    "list": "type conversion error from list to 'bool'",
}


class Device:
    """A device as expressions read it; names without a domain have the driver's.

    `attributes` has a bool, int, str, Semver, or a list of one of these by qualified name, `capacity` a Quantity.
    `problem` is why no expression has a value for the device, such as a version that is none.
    """

    __slots__ = ("allow_multiple_allocations", "attributes", "capacity", "driver", "problem")

    def __init__(
        self,
        driver: str,
        attributes: dict[str, Any] | None = None,
        capacity: dict[str, Quantity] | None = None,
        *,
        allow_multiple_allocations: bool = False,
        problem: str = "",
    ) -> None:
        self.driver = driver
        self.attributes = _by_domain(attributes or {}, driver)
        self.capacity = _by_domain(capacity or {}, driver)
        self.allow_multiple_allocations = allow_multiple_allocations
        self.problem = problem


class Selector:
    """A compiled expression; there is no I/O, and time is linear in its length.

    `paths` has what it reads of a device: `("attributes", domain, name)`, `("capacity", domain, name)`, `("driver",)`
    and `("allowMultipleAllocations",)`. It is None when names are worked out or gone through, so that any may be read.
    Devices that agree in what stands there get the same answer.

    Raises:
        CompileError: It is none; the message is upstream's where that is known.
    """

    __slots__ = ("_code", "_variables", "expression", "paths")

    def __init__(self, expression: str) -> None:
        compiler = Compiler(expression)
        self.expression = expression
        self._code = compiler.code(parse(expression))
        self._variables: list[Any] = [None] * (compiler.size - FIRST_VARIABLE)
        self.paths = compiler.read()

    def matches(self, device: Device) -> bool:
        """Return whether the device is selected.

        Raises:
            EvaluationError: The expression has no value for it, or one that is no bool.
        """
        if device.problem:
            raise EvaluationError(device.problem)
        try:
            value = self._code([device, MOST_STEPS, *self._variables])
        except StoppedError as error:
            raise EvaluationError(str(error)) from None
        if value is True or value is False:
            return value
        kind = kind_of(value)
        why = _UNCONVERTED.get(kind, f"type conversion error from '{kind.removeprefix('kubernetes.')}' to 'bool'")
        raise EvaluationError(f"CEL result of type {kind} could not be converted to bool: {why}")


def versions(texts: list[str], attribute: str) -> list[Semver]:
    """Return the versions in the texts of an attribute.

    Raises:
        EvaluationError: One is none; the message names the attribute.
    """
    try:
        return [Semver.parse(each) for each in texts]
    except EvaluationError as error:
        raise EvaluationError(f"attribute {attribute}: parse semantic version: {error}") from None


def _by_domain(named: dict[str, Any], driver: str) -> Domains:
    domains = Domains()
    for name, value in named.items():
        domain, slash, identifier = name.partition("/")
        if not slash:
            domain, identifier = driver, name
        domains.setdefault(domain, {})[identifier] = value
    return domains
