"""How much of a device's capacities a request takes, by the device's policies (consumable capacity).

All amounts are exact integers in billionths. Source: D/structured/internal/incubating/consumable_capacity.go.
"""

from typing import Final

from bayplan.api.device_objects import DeviceCapacity
from bayplan.api.meta_objects import Quantity
from bayplan.api.quantity import BINARY_EXPONENTS, INT64_MAX, exact_nano

UNIT: Final = 10**9
_BINARY: Final = ("", *BINARY_EXPONENTS)
_DECIMAL: Final = ("", "k", "M", "G", "T", "P", "E")
_TOO_LARGE: Final = "capacity request cannot be represented in the device's range arithmetic"


class CapacityError(ValueError):
    """A request that no device can answer; it ends the attempt."""


class Want:
    """What a request takes of each capacity of a device: `amounts` to count by, `texts` to write down.

    `fits` is False where the device's policies refuse it.
    """

    __slots__ = ("amounts", "fits", "texts")

    def __init__(self, capacity: dict[str, DeviceCapacity], requests: dict[str, Quantity]) -> None:
        """Work out the amounts.

        Raises:
            CapacityError: an amount is negative or too large.
        """
        self.amounts: dict[str, tuple[int, int]] = {}
        self.texts: dict[str, Quantity] = {}
        self.fits = all(name in capacity for name in requests)
        if not self.fits:
            return
        for name, offered in capacity.items():
            try:
                self.texts[name] = text = _consumed(offered, name in requests, requests.get(name))
                amount = exact_nano(text)
            except ValueError as error:
                raise CapacityError(f'capacity "{name}": {error}') from None
            if amount < 0:
                raise CapacityError(f'capacity "{name}": capacity value is negative')
            self.amounts[name] = amount, exact_nano(offered.value)
            self.fits = self.fits and not _violates(amount, offered)

    def fits_beside(self, used: dict[str, int], taking: dict[str, int]) -> bool:
        """Whether it fits beside what others have and what this attempt took already."""
        return self.fits and all(
            used.get(name, 0) + taking.get(name, 0) + amount <= value for name, (amount, value) in self.amounts.items()
        )


def _consumed(offered: DeviceCapacity, requested: bool, request: Quantity) -> Quantity:
    policy = offered.request_policy
    if not requested:
        return policy.default if policy is not None and policy.default is not None else offered.value
    if policy is None:
        return request
    amount = exact_nano(request)
    valid = policy.valid_range
    if valid is not None and valid.min is not None:
        if amount < exact_nano(valid.min):
            return valid.min
        return request if valid.step is None else _stepped(request, amount, valid.min, valid.step)
    return next((value for value in policy.valid_values or () if amount <= exact_nano(value)), request)


def _stepped(request: Quantity, amount: int, least: Quantity, step: Quantity) -> str:
    if amount > INT64_MAX * UNIT:
        raise CapacityError(f"{_TOO_LARGE}: request {request} exceeds MaxInt64")
    start, width = _whole(exact_nano(least)), _whole(exact_nano(step))
    if not width:
        raise CapacityError("step is 0")
    steps = -(-(_whole(amount) - start) // width)
    if start >= 0 and start + steps * width > INT64_MAX:
        raise CapacityError(f"{_TOO_LARGE}: rounding request {request} up to the next step passes MaxInt64")
    return _canonical(start + steps * width, binary=str(step).endswith("i"))


def _violates(amount: int, offered: DeviceCapacity) -> bool:
    policy = offered.request_policy
    if policy is None or (policy.default is not None and amount == exact_nano(policy.default)):
        return False
    valid = policy.valid_range
    if valid is None:
        return bool(policy.valid_values) and all(amount != exact_nano(value) for value in policy.valid_values or ())
    if valid.max is not None and amount > exact_nano(valid.max):
        return True
    width = _whole(exact_nano(valid.step))
    return bool(width) and (_whole(amount) - _whole(exact_nano(valid.min))) % width != 0


def _whole(amount: int) -> int:
    return -(-amount // UNIT)


def _canonical(amount: int, *, binary: bool) -> str:
    """A whole amount as quantities are written."""
    base, suffixes = (1024, _BINARY) if binary else (1000, _DECIMAL)
    power = 0
    while amount and amount % base == 0 and power < len(suffixes) - 1:
        amount, power = amount // base, power + 1
    return f"{amount}{suffixes[power]}"
