"""Integers of 64 bits, signed and not."""

_INT64 = 2**63


class Uint(int):
    """An unsigned integer of 64 bits: a kind of its own, equal to an int of the same amount."""

    __slots__ = ()


def int64_or_none(value: int) -> int | None:
    """Return `value` if it fits in a signed integer of 64 bits."""
    return value if -_INT64 <= value < _INT64 else None
