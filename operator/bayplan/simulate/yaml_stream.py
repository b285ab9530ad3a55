"""Many YAML documents in one text, for files nobody has checked.

Built from events and without recursion. Every key is checked, and what aliases stand for counts each time, so that no
file is slow to read for its size or unfolds into more than it says.
"""

from collections.abc import Iterator
from typing import Any, Final

import yaml

from bayplan.config.document import resolve_scalar
from bayplan.config.errors import child, item, quote

MAX_DEPTH: Final = 64
"""Deepest nesting; Kubernetes objects stay far below."""
MAX_VALUES: Final = 20_000_000
"""Most values in a stream, counting those behind aliases each time."""

_PLAIN_TAGS: Final = frozenset(
    {None, "!", "tag:yaml.org,2002:str", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"},
)
_MERGE: Final = "<<"


class YAMLStreamError(ValueError):
    """Text that is no YAML, or YAML that no Kubernetes object needs; the message has the line."""


def yaml_documents(text: str) -> Iterator[tuple[int, Any]]:
    """The documents of `text` with their numbers, counted from 1; empty ones are left out.

    Scalars mean what kube-scheduler's decoder makes of them: dates are strings, `yes` is true.

    Raises:
        YAMLStreamError: syntax, a repeated key, a tag, an unknown alias, or too much of something.
    """
    number = 0
    builder = _DocumentBuilder()
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.DocumentStartEvent):
                number += 1
                builder = _DocumentBuilder(builder.count)
            elif isinstance(event, yaml.DocumentEndEvent):
                if builder.result is not None:
                    yield number, builder.result
            else:
                builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise YAMLStreamError(_at(mark, str(error.problem or error.context))) from None
    except yaml.YAMLError as error:
        position = getattr(error, "position", None)
        raise YAMLStreamError(f"character {position} is not allowed" if position is not None else "no text") from None


def _at(mark: Any, problem: str) -> str:  # noqa: ANN401 - PyYAML's two kinds of marks share no type
    return f"line {mark.line + 1}: {problem}" if mark is not None else problem


class _Open:
    """A list or mapping that has not ended."""

    __slots__ = ("anchor", "first", "height", "key", "merges", "value")

    def __init__(self, value: dict[str, Any] | list[Any], anchor: str | None, first: int) -> None:
        self.value = value
        self.anchor = anchor
        self.first = first
        self.height = 1
        self.key: str | None = None
        self.merges: list[dict[str, Any]] = []


class _DocumentBuilder:
    """Builds one document; `count` goes on from the documents before it."""

    def __init__(self, count: int = 0) -> None:
        self.count = count
        self.result: Any = None
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int, int]] = {}

    def take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._start(event)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._end(event)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        self._check_tag(event)
        self._count(1, event)
        frame = self._stack[-1] if self._stack else None
        if frame is not None and frame.key is None and isinstance(frame.value, dict):
            if event.value in frame.value:
                raise self._error(f"key {quote(event.value)} is given twice", event)
            frame.key = event.value
            if event.value != _MERGE or not event.implicit[0]:
                frame.value[event.value] = None
            return
        value = resolve_scalar(event.value) if event.implicit[0] else event.value
        if event.anchor:
            self._anchors[event.anchor] = (value, 1, 0)
        self._put(value, 0, event)

    def _start(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        self._check_tag(event)
        self._check_place(event)
        if len(self._stack) >= MAX_DEPTH:
            raise self._error(f"more than {MAX_DEPTH} levels deep", event)
        self._count(1, event)
        value: dict[str, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._stack.append(_Open(value, event.anchor, self.count))

    def _end(self, event: yaml.Event) -> None:
        frame = self._stack.pop()
        for merged in frame.merges:
            assert isinstance(frame.value, dict)
            frame.value = {**merged, **frame.value}
        if frame.anchor:
            self._anchors[frame.anchor] = (frame.value, self.count - frame.first + 1, frame.height)
        self._put(frame.value, frame.height, event)

    def _alias(self, event: yaml.AliasEvent) -> None:
        self._check_place(event)
        anchor = str(event.anchor)
        known = self._anchors.get(anchor)
        if known is None:
            raise self._error(f"alias {quote(anchor)} has no anchor before it", event)
        value, size, height = known
        if len(self._stack) + height > MAX_DEPTH:
            raise self._error(f"more than {MAX_DEPTH} levels deep", event)
        self._count(size, event)
        self._put(value, height, event)

    def _put(self, value: Any, height: int, event: yaml.Event) -> None:  # noqa: ANN401 - any decoded value
        if not self._stack:
            self.result = value
            return
        frame = self._stack[-1]
        frame.height = max(frame.height, height + 1)
        if isinstance(frame.value, list):
            frame.value.append(value)
            return
        assert frame.key is not None
        if frame.key == _MERGE and _MERGE not in frame.value:
            sources = value if isinstance(value, list) else [value]
            if not all(isinstance(source, dict) for source in sources):
                raise self._error("only mappings can be merged with <<", event)
            frame.merges.extend(sources)
        else:
            frame.value[frame.key] = value
        frame.key = None

    def _check_tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
        if event.tag not in _PLAIN_TAGS:
            raise self._error(f"tag {quote(str(event.tag))} is not supported", event)

    def _check_place(self, event: yaml.Event) -> None:
        if self._stack and isinstance(self._stack[-1].value, dict) and self._stack[-1].key is None:
            raise self._error("a key must be a string", event)

    def _count(self, values: int, event: yaml.Event) -> None:
        self.count += values
        if self.count > MAX_VALUES:
            raise self._error(f"more than {MAX_VALUES} values, counting aliases", event)

    def _error(self, problem: str, event: yaml.Event) -> YAMLStreamError:
        path = ""
        for frame in self._stack:
            if isinstance(frame.value, list):
                path = item(path, len(frame.value))
            elif frame.key is not None:
                path = child(path, frame.key)
        return YAMLStreamError(_at(event.start_mark, f"{path}: {problem}" if path else problem))
