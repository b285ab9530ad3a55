"""The names that the API server makes for objects that come without one."""

from itertools import count
from typing import Any, Final, TypeVar

import msgspec
from msgspec import structs

from bayplan.api.errors import DECODE_ERRORS
from bayplan.api.meta_objects import generated_name
from bayplan.simulate.documents import Decoder

T = TypeVar("T", bound=Any)


class _Start(msgspec.Struct, rename="camel", frozen=True):
    generate_name: str = ""


class _Object(msgspec.Struct):
    metadata: _Start = _Start()


_decode: Final = Decoder(_Object)


class GeneratedNames:
    """Gives each object another name, the same in every run; those of API servers end otherwise."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def named(self, obj: T, value: Any) -> T:  # noqa: ANN401 - see RawObject
        """Return `obj`, which was decoded from `value`, with a name if there it has none but a generateName."""
        if obj.metadata.name:
            return obj
        try:
            start = _decode(value).metadata.generate_name
        except DECODE_ERRORS:
            start = ""
        name = generated_name(start, f"{next(self._numbers):05}") if start else ""
        return structs.replace(obj, metadata=structs.replace(obj.metadata, name=name))
