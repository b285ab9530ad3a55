"""What a reflector knows of one resource, read from lists and watches, and how differences reach its handler."""

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from bayplan.api.errors import DECODE_ERRORS
from bayplan.api.meta_objects import ObjectMeta, key_of
from bayplan.api.watch_event import Identity, outline_of, raw_event_decoder
from bayplan.api.watch_source import AnswerError, BrokenStreamError

logger = logging.getLogger(__name__)


class KubernetesObject(Protocol):
    """Anything with metadata."""

    @property
    def metadata(self) -> ObjectMeta:
        """The object's identity."""


T = TypeVar("T", bound=KubernetesObject)
T_contra = TypeVar("T_contra", bound=KubernetesObject, contravariant=True)


class Handler(Protocol[T_contra]):
    """Receives every change of one resource, in order, on the event loop's thread.

    Calls are symmetric: `on_update` and `on_delete` pass the very object that the last `on_add` or `on_update` for that
    name brought, so sums kept over objects stay exact. An exception is logged and does not stop the stream. A class
    that derives from it may leave out `on_update` where a change is one more addition, and `on_synced`.
    """

    def on_add(self, obj: T_contra, /) -> None:
        """Take an object not known before."""

    def on_update(self, old: T_contra, new: T_contra, /) -> None:
        """Replace `old` by `new`: same name and UID, another resource version."""
        self.on_add(new)

    def on_delete(self, obj: T_contra, /) -> None:
        """Drop an object that is gone, or no longer matches the selectors."""

    def on_synced(self) -> None:
        """Know that the first list is complete; called once."""
        return


@dataclass(eq=False)
class ObjectStore(Generic[T]):
    """The last known version of each object by key, passing each change to the handler exactly once.

    Relied on by `Reflector`, which gives it what lists and watches bring. Keys are "namespace/name", or the name alone
    for cluster-scoped objects. Versions seen before (same UID and resource version) are dropped, as long as it
    `trusts_versions`. Another UID under a known name is a deletion and an addition. What is held of an object is
    `shared` of it, which is equal. `on_handled` receives the name of each method that was called, and how many seconds
    it took.
    """

    object_type: type[T]
    handler: Handler[T]
    on_undecodable: Callable[[str, str], None] = field(kw_only=True)
    keep_undecodable: bool = field(kw_only=True)
    shared: Callable[[T], T] = field(default=lambda obj: obj, kw_only=True)
    on_handled: Callable[[str, float], None] = field(default=lambda call, seconds: None, kw_only=True)
    objects: dict[str, T] = field(default_factory=dict, init=False)
    trusts_versions: bool = field(default=True, init=False)
    _undecodable: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Know of no object, and how to read one."""
        event_type = msgspec.defstruct("Event", [("type", str), ("object", self.object_type)])
        self._event_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(event_type)
        self._object_decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(self.object_type)

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

    def put(self, raw: msgspec.Raw) -> str:
        """Take an object that is still JSON, and return its key."""
        try:
            return self._put(self._object_decoder.decode(raw))
        except DECODE_ERRORS as error:
            return self._put_undecodable(outline_of(raw).metadata, str(error))

    def remove(self, key: str, uid: str | None = None) -> None:
        """Forget an object that is gone; with `uid`, only if it is that one and not a namesake."""
        self._undecodable.pop(key, None)
        old = self.objects.get(key)
        if old is not None and (uid is None or old.metadata.uid == uid):
            self._drop(key)

    def keys_outside(self, present: Collection[str]) -> list[str]:
        """Return the keys a complete list no longer holds."""
        for key in [key for key in self._undecodable if key not in present]:
            del self._undecodable[key]
        return [key for key in self.objects if key not in present]

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
            self.remove(identity.key, identity.uid)
        elif event.type in {"ADDED", "MODIFIED"}:
            self.put(event.object)
        return identity.resource_version

    def _put(self, obj: T) -> str:
        key = key_of(obj.metadata)
        obj = self.shared(obj)
        old = self.objects.get(key)
        if self._undecodable:
            self._undecodable.pop(key, None)
        if old is None:
            self.objects[key] = obj
            self._call(self.handler.on_add, key, obj)
        elif old.metadata.uid != obj.metadata.uid:
            self.remove(key)
            self.objects[key] = obj
            self._call(self.handler.on_add, key, obj)
        elif old.metadata.resource_version != obj.metadata.resource_version or not self.trusts_versions:
            self.objects[key] = obj
            self._call(self.handler.on_update, key, old, obj)
        return key

    def _put_undecodable(self, identity: Identity, error: str) -> str:
        """Take note of a version that cannot be read; the object's last readable one is kept or dropped.

        Kept, capacity it holds stays held (pods). Dropped, nothing is decided on outdated facts (nodes).
        """
        key, version = identity.key, f"{identity.uid}@{identity.resource_version}"
        if self._undecodable.get(key) != version:
            self._undecodable[key] = version
            self._call(self.on_undecodable, key, key, error)
        old = self.objects.get(key)
        if old is not None and (not self.keep_undecodable or old.metadata.uid != identity.uid):
            self._drop(key)
        return key

    def _drop(self, key: str) -> None:
        self._call(self.handler.on_delete, key, self.objects.pop(key))

    def _call(self, function: Callable[..., None], key: str, *arguments: object) -> None:
        started = perf_counter()
        try:
            function(*arguments)
        except Exception:
            # One object that breaks its owner must not blind the scheduler to all the others.
            logger.exception("handler failed call=%s object=%r", function.__name__, key)
        else:
            self.on_handled(function.__name__, perf_counter() - started)
