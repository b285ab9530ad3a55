"""Which objects of files are checked as the API server would check them, and what becomes of the mistakes."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, Final

import msgspec

from bayplan.api.errors import DECODE_ERRORS
from bayplan.simulate.documents import ClusterFileError, Decoder, RawObject, title
from bayplan.simulate.input_files import objects_in
from bayplan.simulate.openapi import MOST_ERRORS, TWICE, published_errors


class Validate(StrEnum):
    """What becomes of objects that the API server would refuse, as kubectl calls it."""

    STRICT = "strict"
    WARN = "warn"
    IGNORE = "ignore"


class _Identity(msgspec.Struct, rename="camel", frozen=True):
    uid: Any = None
    resource_version: Any = None


class _Identified(msgspec.Struct):
    metadata: _Identity = _Identity()


_identified: Final = Decoder(_Identified)


class Validation:
    """Collects the mistakes in objects that people wrote; `mode` says whether they end the reading."""

    def __init__(self, mode: Validate) -> None:
        self.lines: list[str] = []
        self._mode = mode

    def objects_in(self, files: Iterable[str], *, are_added: bool = False) -> Iterator[RawObject]:
        """Yield the objects in `files` that can be taken in, and note what is wrong with the others.

        What came from an API server is taken as it is, unless it is added.

        Raises:
            ClusterFileError: a file cannot be read, or there are more mistakes than anybody reads.
        """
        is_checked = self._mode is not Validate.IGNORE
        for raw in objects_in(files, located=is_checked):
            if not is_checked or (not are_added and came_from_server(raw)) or self._passes(raw):
                yield raw

    @contextmanager
    def told(self) -> Iterator[None]:
        """Raise ClusterFileError with the mistakes of all objects, and of what cannot be read, once all are read."""
        try:
            yield
        except ClusterFileError as error:
            raise ClusterFileError("\n".join((*self.lines[:MOST_ERRORS], str(error)))) from None
        if self._mode is Validate.STRICT and self.lines:
            raise ClusterFileError("\n".join(self.lines))

    def warnings(self) -> Iterator[str]:
        """Yield a line for each mistake that was let pass, up to those that anybody reads."""
        yield from (f"warning: {line}" for line in self.lines[:MOST_ERRORS])
        if (more := len(self.lines) - MOST_ERRORS) > 0:
            yield f"warning: ... and {more} more"

    def _passes(self, raw: RawObject) -> bool:
        try:
            value = raw.value
            if isinstance(value, msgspec.Raw):
                value = json.loads(bytes(value), object_pairs_hook=_object)
        except (*DECODE_ERRORS, ValueError):
            # Reading it tells of that.
            return True
        errors = published_errors(raw.api_version, raw.kind, value)
        self.lines += [f"{title(raw, str(error))}: {error}" for error in errors]
        if self._mode is Validate.STRICT and len(self.lines) > MOST_ERRORS:
            raise ClusterFileError(f"... and more errors: no more than {MOST_ERRORS} are told")
        return not errors or self._mode is Validate.WARN


NOTHING_CHECKED: Final = Validation(Validate.IGNORE)


def came_from_server(raw: RawObject) -> bool:
    """Whether an API server gave the object a uid or a version, as in snapshots and what `kubectl get` writes."""
    value = raw.value if isinstance(raw.value, msgspec.Raw) else {"metadata": raw.value.get("metadata")}
    try:
        metadata = _identified(value).metadata
    except DECODE_ERRORS:
        return False
    return bool(metadata.uid or metadata.resource_version)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        fields |= {key: TWICE for key, number in Counter(key for key, _ in pairs).items() if number > 1}
    return fields
