"""YAML to plain values within limits, for files that nobody has checked.

Scalars mean what kube-scheduler's decoder makes of them (sigs.k8s.io/yaml, on YAML 1.1): `yes` and `on` are true, dates
are strings. Building uses no recursion, and what an alias stands for counts each time, so no file is slow to read for
its size or unfolds into more than it says.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from bayplan.config.errors import Place, child, item, quote

_NULL: Final = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE: Final = frozenset(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"))
_FALSE: Final = frozenset(("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"))
_INTEGER: Final = re.compile(r"([-+]?)(?:0b([01_]+)|0o?([0-7_]+)|0x([0-9a-fA-F_]+)|(0|[1-9][0-9_]*))")
_FLOAT: Final = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_MAX_NUMBER_CHARACTERS: Final = 64
_SCALAR_TAGS: Final = frozenset((None, "!", "tag:yaml.org,2002:str"))
_CONTAINER_TAGS: Final = frozenset((None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"))


class MalformedYAMLError(ValueError):
    """Raised for text that is no YAML; the message has the line, and `place` is where that is, if known."""

    def __init__(self, problem: str, place: Place | None = None) -> None:
        self.place = place
        super().__init__(problem)


@dataclass(frozen=True, slots=True)
class YAMLPlace(Place):
    """Where in a text something is wrong."""

    container: str
    """The path of the object or list that was being read."""
    path: str
    """The path of the value in it; that of the container where a key is wrong."""


class RefusedYAMLError(ValueError):
    """Raised for YAML that holds too much, or what no Kubernetes object needs."""

    def __init__(self, problem: str, place: YAMLPlace) -> None:
        self.place = place
        super().__init__(problem)


@dataclass(frozen=True, slots=True)
class Rules:
    """What a kind of file may hold, and what becomes of mistakes in mappings, after which reading can go on.

    `mistake` raises an error or notes one. Where it returns, the last value of a repeated key counts, and a wrong merge
    adds nothing.
    """

    max_depth: int
    """Deepest nesting."""
    max_values: int
    """Most values in all documents, keys among them; those behind aliases count each time."""
    mistake: Callable[[YAMLPlace, str | None], None]
    """Gets a repeated key; None for a `<<` with something that is neither a mapping nor a list of mappings."""
    one_document: bool = False
    max_aliased: int | None = None
    """Most values behind aliases in all documents, where fewer than `max_values` are wanted: a short text unfolds."""


Members = dict[int, dict[str, tuple[Place, Any]]]
"""For the id of each container: by the part of a path, where each of its values begins, and the value."""


def yaml_documents(text: str, rules: Rules, members: Members | None = None) -> Iterator[tuple[int, Any]]:
    """Yield the documents of `text` with their numbers, counted from 1; an empty one is None.

    `members` gets where the values stand, for as long as the documents are kept.

    Raises:
        MalformedYAMLError: the text is no YAML.
        RefusedYAMLError: a tag, a key that is no string, an unknown alias, or too much of something.
    """
    number = 0
    builder = _Builder(rules, members)
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.DocumentStartEvent):
                number += 1
                if number > 1 and rules.one_document:
                    raise RefusedYAMLError("must hold one document", YAMLPlace(_place_of(event).line, 1, "", ""))
                builder = _Builder(rules, members, builder.count, builder.aliased)
            elif isinstance(event, yaml.DocumentEndEvent):
                yield number, builder.result
            else:
                builder.take(event)
    except yaml.MarkedYAMLError as error:
        problem, mark = error.problem or error.context or "", error.problem_mark
        if mark is None:
            raise MalformedYAMLError(problem) from None
        place = Place(mark.line + 1, mark.column + 1)
        raise MalformedYAMLError(f"line {place.line}: {problem}", place) from None
    except yaml.reader.ReaderError as error:
        raise MalformedYAMLError(f"character {error.position} is not allowed") from None


def resolve_scalar(text: str) -> Any:  # noqa: ANN401 - a plain scalar is any of the five kinds
    """Return what an unquoted scalar means: None, bool, int, float or str."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    number = _resolve_number(text) if len(text) <= _MAX_NUMBER_CHARACTERS else None
    return text if number is None else number


def _resolve_number(text: str) -> int | float | None:
    if match := _INTEGER.fullmatch(text):
        sign, *candidates = match.groups()
        for digits, base in zip(candidates, (2, 8, 16, 10), strict=True):
            if digits and (digits := digits.replace("_", "")):
                return -int(digits, base) if sign == "-" else int(digits, base)
    elif _FLOAT.fullmatch(text):
        special = text[-1].isalpha()
        return float(text.replace(".", "") if special else text)
    return None


def _place_of(event: yaml.Event) -> Place:
    mark = event.start_mark
    return Place(mark.line + 1, mark.column + 1) if mark else Place(0, 0)


@dataclass(slots=True)
class _Frame:
    """A container that is still open."""

    value: dict[str, Any] | list[Any]
    anchor: str | None
    first: int
    """How many values had been counted when it opened."""
    height: int = 1
    """Levels below and including it, so far."""
    key: str | None = None
    """The key whose value comes next, in a mapping."""
    key_event: yaml.Event | None = None
    merging: bool = False
    """Whether that key merges its value into the mapping."""
    merges: list[dict[str, Any]] = field(default_factory=list)


class _Builder:
    """Builds one document from events; `count` and `aliased` go on from the documents before it."""

    def __init__(self, rules: Rules, members: Members | None, count: int = 0, aliased: int = 0) -> None:
        self.count = count
        self.aliased = aliased
        self.result: Any = None
        self._rules = rules
        self._members = members
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[Any, int, int]] = {}
        """By name: the value, how many values it holds, and its height."""

    def take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._open(event)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._close(event)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        self._check_tag(event, _SCALAR_TAGS)
        self._count_values(1, event)
        frame = self._stack[-1] if self._stack else None
        if frame is not None and frame.key is None and isinstance(frame.value, dict):
            self._take_key(frame, frame.value, event)
            return
        value = resolve_scalar(event.value) if event.implicit[0] else event.value
        if event.anchor:
            self._anchors[event.anchor] = (value, 1, 0)
        self._locate(value, event)
        self._add(value, 0, event)

    def _open(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        self._check_tag(event, _CONTAINER_TAGS)
        self._check_place(event)
        self._check_depth(1, event)
        self._count_values(1, event)
        value: dict[str, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._locate(value, event)
        self._stack.append(_Frame(value, event.anchor, self.count))
        if self._members is not None:
            self._members[id(value)] = {}

    def _close(self, event: yaml.Event) -> None:
        frame = self._stack.pop()
        for merged in frame.merges:
            for key, value in merged.items():
                frame.value.setdefault(key, value)  # type: ignore[union-attr]  # only mappings have merges
            if self._members is not None:
                self._members[id(frame.value)] = self._members[id(merged)] | self._members[id(frame.value)]
        if frame.anchor:
            self._anchors[frame.anchor] = (frame.value, self.count - frame.first + 1, frame.height)
        self._add(frame.value, frame.height, event)

    def _alias(self, event: yaml.AliasEvent) -> None:
        self._check_place(event)
        anchor = event.anchor or ""
        if any(frame.anchor == anchor for frame in self._stack):
            raise self._refused(f"alias {quote(anchor)} is inside its own value", event)
        if anchor not in self._anchors:
            raise self._refused(f"alias {quote(anchor)} has no anchor before it", event)
        value, size, height = self._anchors[anchor]
        self._check_depth(height, event)
        self._count_values(size, event)
        self.aliased += size
        if self._rules.max_aliased is not None and self.aliased > self._rules.max_aliased:
            raise self._refused(f"holds more than {self._rules.max_aliased} values behind aliases", event)
        self._locate(value, event)
        self._add(value, height, event)

    def _take_key(self, frame: _Frame, mapping: dict[str, Any], event: yaml.ScalarEvent) -> None:
        key = event.value
        if key in mapping:
            self._rules.mistake(self._place(event), key)
        frame.key, frame.key_event = key, event
        # A plain `<<` merges what follows it; a quoted one is an ordinary key.
        frame.merging = key == "<<" and event.implicit[0]
        if not frame.merging:
            mapping.setdefault(key, None)

    def _locate(self, value: Any, event: yaml.Event) -> None:  # noqa: ANN401 - any decoded value
        """Note where a value begins that the open container gets next: the last of repeated keys is the one."""
        frame = self._stack[-1] if self._stack else None
        if self._members is None or frame is None or frame.merging:
            return
        start, name = event, f"[{len(frame.value)}]"
        if frame.key is not None and frame.key_event is not None:
            start, name = frame.key_event, child("", frame.key)
        self._members[id(frame.value)][name] = (_place_of(start), value)

    def _add(self, value: Any, height: int, event: yaml.Event) -> None:  # noqa: ANN401 - any decoded value
        if not self._stack:
            self.result = value
            return
        frame = self._stack[-1]
        frame.height = max(frame.height, height + 1)
        if isinstance(frame.value, list):
            frame.value.append(value)
            return
        assert frame.key is not None
        if frame.merging:
            sources = value if isinstance(value, list) else [value]
            if all(isinstance(source, dict) for source in sources):
                frame.merges.extend(sources)
            else:
                self._rules.mistake(self._place(event), None)
        else:
            frame.value[frame.key] = value
        frame.key = None

    def _check_tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, supported: frozenset[str | None]) -> None:
        if event.tag not in supported:
            raise self._refused(f"tag {quote(str(event.tag))} is not supported", event)

    def _check_place(self, event: yaml.Event) -> None:
        if self._stack and isinstance(self._stack[-1].value, dict) and self._stack[-1].key is None:
            raise self._refused("a key must be a string", event)

    def _check_depth(self, height: int, event: yaml.Event) -> None:
        if len(self._stack) + height > self._rules.max_depth:
            raise self._refused(f"is nested more than {self._rules.max_depth} levels deep", event)

    def _count_values(self, count: int, event: yaml.Event) -> None:
        self.count += count
        if self.count > self._rules.max_values:
            raise self._refused(f"holds more than {self._rules.max_values} values, counting aliases", event)

    def _refused(self, problem: str, event: yaml.Event) -> RefusedYAMLError:
        return RefusedYAMLError(problem, self._place(event))

    def _place(self, event: yaml.Event) -> YAMLPlace:
        # Worked out only for errors: a path for every container would cost large files more than building them.
        path = container = ""
        for frame in self._stack:
            container = path
            if isinstance(frame.value, list):
                path = item(path, len(frame.value))
            elif frame.key is not None:
                path = child(path, frame.key)
        at = _place_of(event)
        return YAMLPlace(at.line, at.column, container, path)
