"""Which form of an answer a client asks for, as Kubernetes' components read an Accept header.

Upstream: apiserver pkg/endpoints/handlers/negotiation, and goautoneg, which splits the header.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

JSON: Final = "application/json"
YAML: Final = "application/yaml"
TEXT: Final = "text/plain"
MEDIA_TYPES: Final = (JSON, YAML, TEXT)
"""What is offered, in the order in which wildcards are tried on it."""

# Ask for something that none of these answers has.
_IMPOSSIBLE = ("stream", "sv")


class Kind(NamedTuple):
    """The group, version and kind of a structured answer; parameters of the media type name them `g`, `v` and `as`."""

    group: str
    version: str
    kind: str


@dataclass(frozen=True, slots=True)
class Clause:
    """One media type of an Accept header."""

    type: str
    subtype: str
    quality: float = 1.0
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> Kind | None:
        """What the answer shall be converted to, if anything is said of that."""
        if self.parameters.keys().isdisjoint({"g", "v", "as"}):
            return None
        return Kind(*(self.parameters.get(key, "") for key in ("g", "v", "as")))

    def matches(self, media_type: str) -> bool:
        """Whether a media type is one that this clause takes."""
        own, _, subtype = media_type.partition("/")
        return (self.type == own and self.subtype in {subtype, "*"}) or self.type == self.subtype == "*"


class Form(NamedTuple):
    """What an answer is encoded as; without a kind it is not converted to anything."""

    media_type: str
    kind: Kind | None
    indented: bool

    @property
    def content_type(self) -> str:
        """What the header of the answer says."""
        if self.kind is None:
            return self.media_type
        return f"{self.media_type};g={self.kind.group};v={self.kind.version};as={self.kind.kind}"


def clauses_of(header: str) -> list[Clause]:
    """Return the media types of an Accept header, the most wanted first; what cannot be read is left out."""
    found = [clause for part in header.split(",") if (clause := _clause(part)) is not None]
    return sorted(found, key=lambda each: (-each.quality, each.type == "*", each.subtype == "*"))


def negotiate(header: str, kinds: Collection[Kind | None]) -> Form | None:
    """Return the form that a client wants: text without a kind, others with one of `kinds`; None for none of these.

    A refusal has no kind: None stands for that among `kinds`.
    """
    for clause in clauses_of(header):
        for media_type in MEDIA_TYPES:
            allowed = (None,) if media_type == TEXT else kinds
            if clause.matches(media_type) and clause.kind in allowed and not _is_impossible(clause):
                return Form(media_type, clause.kind, clause.parameters.get("pretty") == "1")
    return None


def _is_impossible(clause: Clause) -> bool:
    return any(clause.parameters.get(key) for key in _IMPOSSIBLE)


def _clause(part: str) -> Clause | None:
    media_type, *options = part.strip(" ").split(";")
    own, *subtypes = (each.strip(" ") for each in media_type.split("/"))
    if not any(subtypes):
        # A star alone stands for all; anything else alone for nothing.
        return Clause("*", "*", *_parameters(options)) if own == "*" else None
    return Clause(own, subtypes[0], *_parameters(options)) if len(subtypes) == 1 else None


def _parameters(options: Collection[str]) -> tuple[float, dict[str, str]]:
    quality, parameters = 1.0, {}
    for option in options:
        key, *values = (each.strip(" ") for each in option.split("="))
        if len(values) != 1 or not values[0]:
            continue
        if key == "q":
            quality = _quality(values[0])
        else:
            parameters[key] = values[0]
    return quality, parameters


def _quality(text: str) -> float:
    try:
        quality = float(text)
    except ValueError:
        return 0.0
    return quality if math.isfinite(quality) else 0.0
