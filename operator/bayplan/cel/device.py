"""What an expression knows of a device."""

from typing import Any

from bayplan.cel.errors import EvaluationError
from bayplan.cel.quantity import Quantity
from bayplan.cel.semver import Semver
from bayplan.cel.values import Domains


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
