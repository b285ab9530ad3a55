"""A claim in the form in which the API server stores it, which JSON does not keep (docs/adr/0030).

What is here of protocol buffers is two rules of their encoding: a field that stands twice is merged, and every field
of these messages has a length.
"""

from collections.abc import Iterator
from typing import Final

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_PREFIX: Final = b"k8s\x00"
_OBJECT: Final = 0x12
"""The field `raw` of what is around an object (upstream: apimachinery/pkg/runtime/generated.proto, Unknown)."""
_METADATA: Final = 0x0A
"""The field `metadata` of every object."""
_FINALIZERS: Final = 0x72
"""The field `finalizers` of metadata (upstream: apimachinery/pkg/apis/meta/v1/generated.proto, ObjectMeta)."""


def with_finalizer(stored: bytes, finalizer: str) -> bytes:
    """Return an object in protobuf with one finalizer more, and all else byte for byte; bind_claim relies on it.

    Raises:
        ValueError: it is no object in protobuf.
    """
    if not stored.startswith(_PREFIX):
        raise ValueError("the answer is not in protobuf")
    added = _field(_METADATA, _field(_FINALIZERS, finalizer.encode()))
    fields = [_field(tag, value + added if tag == _OBJECT else value) for tag, value in _fields(stored[len(_PREFIX) :])]
    return _PREFIX + b"".join(fields)


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(message):
        tag, shift, length = message[at], 0, 0
        while True:
            at += 1
            if at >= len(message):
                raise ValueError("the answer is cut off")
            length |= (message[at] & 0x7F) << shift
            shift += 7
            if message[at] < 0x80:
                break
        if len(message) - at - 1 < length:
            raise ValueError("the answer is cut off")
        yield tag, message[at + 1 : at + 1 + length]
        at += 1 + length


def _field(tag: int, value: bytes) -> bytes:
    length, head = len(value), bytearray([tag])
    while length >= 0x80:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return bytes(head) + value
