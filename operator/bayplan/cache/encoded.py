"""Parts of an object as bytes, by which what was worked out of them is found again."""

import msgspec

_encode = msgspec.msgpack.Encoder().encode

_UNKNOWN_SIZE = 2**20
_UNWRITABLE = (msgspec.MsgspecError, ValueError, OverflowError, RecursionError)
"""Raised for text or a number that no message can carry; a file can hold such."""


def encoded(parts: object, *, largest: int) -> bytes | None:
    """The same bytes for the same parts; None if they are more than `largest`, or cannot be written as bytes.

    Whoever keeps things by such bytes relies on `largest`: with the number kept it bounds the memory that made-up
    objects can take.
    """
    try:
        written = _encode(parts)
    except _UNWRITABLE:
        return None
    return written if len(written) <= largest else None


def encoded_size(parts: object) -> int:
    """How many bytes the parts are; a megabyte if they cannot be written as bytes."""
    try:
        return len(_encode(parts))
    except _UNWRITABLE:
        return _UNKNOWN_SIZE
