"""Puts what lists and watches bring into the store."""

from typing import Any, Generic

import msgspec

from bayplan.api.errors import DECODE_ERRORS
from bayplan.api.object_store import ObjectStore, T
from bayplan.api.watch_event import outline_of, raw_event_decoder
from bayplan.api.watch_source import AnswerError, BrokenStreamError


class WatchLines(Generic[T]):
    """Decodes objects of one type and has the store hold them; the reflector relies on it for every object.

    An object that cannot be decoded is the store's to report.
    """

    def __init__(self, store: ObjectStore[T], object_type: type[T]) -> None:
        self._store = store
        event_type = msgspec.defstruct("Event", [("type", str), ("object", object_type)])
        self._event_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(event_type)
        self._object_decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(object_type)

    def take(self, line: bytes) -> str:
        """Take a line of a watch; return the version that the watch has come to with it, "" if it does not say.

        Raises:
            AnswerError: the line is the server's refusal to go on.
            BrokenStreamError: it is no event.
        """
        if line.startswith(b'{"type":"DELETED",'):  # Of what is gone only the name is read: the store has the rest.
            return self._take_raw(line)
        try:
            event = self._event_decoder.decode(line)
        except DECODE_ERRORS:
            return self._take_raw(line)
        obj: T = event.object
        version = obj.metadata.resource_version
        if event.type not in {"ADDED", "MODIFIED"} or not version:
            return self._take_raw(line)
        self._put(obj)
        return version

    def _take_raw(self, line: bytes) -> str:
        """Take a deletion, a bookmark or an error, or an object that does not decode."""
        try:
            event = raw_event_decoder.decode(line)
        except DECODE_ERRORS as error:
            raise BrokenStreamError(f"the event is not readable: {error}") from error
        outline = outline_of(event.object)
        if event.type == "ERROR":
            raise AnswerError(outline.code or 500, f"{outline.reason}: {outline.message}")
        identity = outline.metadata
        if event.type == "DELETED":
            self._store.remove(identity.key, identity.uid)
        elif event.type in {"ADDED", "MODIFIED"}:
            self.put(event.object)
        return identity.resource_version

    def put(self, raw: msgspec.Raw) -> str:
        """Take an object that is still JSON, and return its key."""
        try:
            obj = self._object_decoder.decode(raw)
        except DECODE_ERRORS as error:
            identity = outline_of(raw).metadata
            self._store.put_undecodable(identity.key, identity.uid, identity.resource_version, str(error))
            return identity.key
        return self._put(obj)

    def _put(self, obj: T) -> str:
        meta = obj.metadata
        key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
        self._store.put(key, obj)
        return key
