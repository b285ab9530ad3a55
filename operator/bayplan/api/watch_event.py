"""The parts of a watch event that are the same for all kinds of objects."""

import msgspec


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


raw_event_decoder = msgspec.json.Decoder(RawEvent)
_outline_decoder = msgspec.json.Decoder(Outline)
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def outline_of(raw: msgspec.Raw) -> Outline:
    """Return the outline of any object; one without a readable name is called "?" in reports."""
    try:
        return _outline_decoder.decode(raw)
    except UNREADABLE:
        return Outline(metadata=Identity(name="?"))
