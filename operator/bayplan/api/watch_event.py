"""What is read of lists, watches and answers by itself: the outline of any object, and pods."""

import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from bayplan.api.errors import DECODE_ERRORS
from bayplan.api.objects import Pod

logger = logging.getLogger(__name__)


class Identity(msgspec.Struct, rename="camel"):
    """Which object, in which version."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""

    @property
    def key(self) -> str:
        """The object's "namespace/name", or its name when it has no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Outline(msgspec.Struct):
    """The outline of any watched object, and of the Status that an ERROR event carries."""

    metadata: Identity = msgspec.field(default_factory=Identity)
    code: int = 0
    reason: str = ""
    message: str = ""


class RawEvent(msgspec.Struct):
    """A watch event whose object is still JSON."""

    type: str
    object: msgspec.Raw


class PodEvent(msgspec.Struct, frozen=True):
    """What kopf told of a pod, cut to what bayplan reads; without a `pod` it is gone, or `error` says what is wrong."""

    type: str | None
    identity: Identity
    pod: Pod | None = None
    error: str = ""


raw_event_decoder = msgspec.json.Decoder(RawEvent)
_pod_decoder = msgspec.json.Decoder(Pod)
_outline_decoder = msgspec.json.Decoder(Outline)


def outline_of(raw: msgspec.Raw) -> Outline:
    """Return the outline of any object; one without a readable name is called "?" in reports."""
    try:
        return _outline_decoder.decode(raw)
    except DECODE_ERRORS:
        return Outline(metadata=Identity(name="?"))


def pod_event(event: Mapping[str, Any]) -> PodEvent:
    """Read an event whose object is JSON's own values; raises for nothing that JSON can hold."""
    body = event.get("object")
    metadata = body.get("metadata") if isinstance(body, dict) else None
    fields = metadata.items() if isinstance(metadata, dict) else ()
    texts = {name: value for name, value in fields if isinstance(value, str)}
    identity = msgspec.convert(texts, Identity)
    if event.get("type") == "DELETED":
        return PodEvent("DELETED", identity)
    try:
        return PodEvent(event.get("type"), identity, msgspec.convert(body, Pod))
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        return PodEvent(event.get("type"), identity, error=str(error))


def read_pod(body: bytes | msgspec.Raw) -> Pod | None:
    """Return the pod that an answer or an item of a list holds; None, logged at debug level, if it is unreadable."""
    try:
        return _pod_decoder.decode(body)
    except (ValueError, *DECODE_ERRORS) as error:
        logger.debug("no pod that can be read error=%s", error)
        return None
