"""A snapshot as one JSON list of objects, which `bayplan simulate --cluster` and kubectl read."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from bayplan.api.kinds import Resource


def document(objects: Iterable[tuple[Resource, Any]]) -> Iterator[bytes]:
    """Yield the list piece by piece, an object a line; each is of the type of its resource."""
    encoder = msgspec.json.Encoder()
    separator = b"\n"
    yield b'{"apiVersion":"v1","kind":"List","items":['
    for resource, obj in objects:
        head = encoder.encode({"apiVersion": resource.api_version, "kind": resource.kind})
        body = encoder.encode(obj)
        yield separator + head[:-1] + (b"," if len(body) > 2 else b"") + body[1:]
        separator = b",\n"
    yield b"\n]}\n"
