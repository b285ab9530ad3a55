"""What the wire objects of all kinds share: metadata, owners, label selectors, quantities and times.

Decoding drops what is not listed here and in the modules of the kinds (most annotations, environment, managed fields),
so secrets and bulk never stay in memory. Every field has the API's zero value as its default: a sparse object decodes.
Structs are immutable: caches share them freely. Times are text of RFC 3339 in objects, and seconds since the epoch
where they are compared.
"""

from datetime import UTC, datetime
from typing import Final

import msgspec

Quantity = str | int | float | None


class Struct(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A wire object: frozen, outside the garbage collector's walks, camelCase on the wire."""


class OwnerReference(Struct, frozen=True):
    """Who owns an object; `controller` marks the one that manages it."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Annotations(Struct, frozen=True):
    """The annotations that are read of any kind; None means that it is absent."""

    expected_duration: str | None = msgspec.field(default=None, name="bayplan.io/expected-duration")
    """For how long a pod expects to run."""


class ObjectMeta(Struct, frozen=True):
    """The identity, labels and lifecycle stamps of an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    annotations: Annotations | None = None


class Described(Struct, frozen=True):
    """An object of some kind: what all kinds have."""

    metadata: ObjectMeta = ObjectMeta()


def key_of(meta: ObjectMeta) -> str:
    """Return the object's "namespace/name", or the name alone of what has no namespace."""
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    """Return who controls an object, if anybody does (upstream: metav1.GetControllerOf)."""
    return next((each for each in meta.owner_references or () if each.controller), None)


def is_later_version(version: str, known: str) -> bool:
    """Whether the resourceVersion `version` is later than `known`, as far as that can be said.

    Decimal ones have an order, whatever their length. Another one is never later than a decimal one, and always later
    than any other, unless both are the same and not empty. Upstream: apimachinery, CompareResourceVersion.
    """
    if version == known:
        return not version
    return not _is_decimal(known) or (_is_decimal(version) and (len(version), version) > (len(known), known))


def _is_decimal(version: str) -> bool:
    return version.isascii() and version.isdecimal() and version[0] != "0"


def generated_name(generate_name: str, ending: str) -> str:
    """Return the name of an object that comes with a generateName, as an API server makes it with that ending.

    Upstream: apiserver pkg/storage/names/generate.go.
    """
    return f"{generate_name[:58]}{ending}"


class LabelSelectorRequirement(Struct, frozen=True):
    """One expression of a label selector."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(Struct, frozen=True):
    """A metav1.LabelSelector: labels and expressions, all of which must match."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelSelectorRequirement] | None = None


_YEARS: Final = 400
_SECONDS_OF_YEARS: Final = 146_097 * 86_400
"""The calendar repeats after that many years."""
_FIRST: Final = datetime(1, 1, 1, tzinfo=UTC).timestamp()
_LAST: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


def parse_time(text: str) -> float:
    """Return the time in seconds since the epoch; one without a zone is taken as UTC.

    Raises:
        ValueError: the text is no time.
    """
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except OverflowError as error:
        raise ValueError(str(error)) from None


def format_time(seconds: float) -> str:
    """Return any time that `parse_time` gives as text in UTC, in whole seconds.

    A zone can carry the first and the last year into years that Python's calendar does not have.
    """
    shift = _YEARS if seconds < _FIRST else -_YEARS if seconds >= _LAST + 1 else 0
    moment = datetime.fromtimestamp(seconds + shift // _YEARS * _SECONDS_OF_YEARS, UTC)
    return f"{moment.year - shift:04}{moment.isoformat()[4:19]}Z"
