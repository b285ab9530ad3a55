"""Where in a file a field stands, worked out only for files in which something is to be remarked."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeVar

import yaml

from bayplan.config.document import MAX_DEPTH
from bayplan.config.errors import Place, Remark, child

_SEGMENT: Final = re.compile(r'\.?([A-Za-z0-9_\-]{1,64})|(\[[0-9]+\])|(\["(?:[^"\\]|\\.)*"\])')

AnyRemark = TypeVar("AnyRemark", bound=Remark)


@dataclass(slots=True, eq=False)
class _Node:
    """A value of the file, with its members by their parts of a path: where each begins, and what it is."""

    is_list: bool = False
    members: dict[str, "tuple[Place, _Node]"] = field(default_factory=dict)
    merged: list["_Node"] = field(default_factory=list)
    key: tuple[str, Place] | None = None
    """The key whose value comes next; "<<" has no place in a path."""


class Positions:
    """The places of the fields of documents; behind what is nested more deeply than MAX_DEPTH nothing has one."""

    def __init__(self, data: bytes) -> None:
        self._roots: list[_Node] = []
        self._anchors: dict[str, _Node] = {}
        try:
            self._read(yaml.parse(data.decode("utf-8-sig"), Loader=yaml.CSafeLoader))
        except (yaml.YAMLError, UnicodeDecodeError):
            # Then one message tells of the whole file, and of the line.
            self._roots = []

    def place(self, path: str, document: int = 1) -> Place | None:
        """Return where the field at `path` begins: its key, or the element of a list. Documents count from 1.

        For one that is not there it is the nearest thing around it that is; None where nothing is.
        """
        found, node, end = None, self._roots[document - 1] if document <= len(self._roots) else _Node(), 0
        while match := _SEGMENT.match(path, end):
            member = _member(node, match[1] or match[2] or match[3])
            if member is None:
                break
            (found, node), end = member, match.end()
        return found

    def placed(self, remarks: Iterable[AnyRemark]) -> list[AnyRemark]:
        """Return the remarks with their places; those that have one keep it, and those of no field have none."""
        placed = []
        for each in remarks:
            place = self.place(each.path) if each.place is None else None
            placed.append(each if place is None else each.at(place))
        return placed

    def _read(self, events: Iterable[yaml.Event]) -> None:
        stack: list[_Node] = []
        for event in events:
            if isinstance(event, yaml.CollectionEndEvent):
                stack.pop()
            elif isinstance(event, yaml.NodeEvent):
                parent = stack[-1] if stack else None
                if parent is not None and not parent.is_list and parent.key is None:
                    parent.key = _key(event)
                    continue
                node = self._node(event)
                if parent is None:
                    self._roots.append(node)
                else:
                    _add(parent, node, event)
                if isinstance(event, yaml.CollectionStartEvent):
                    stack.append(node)
                if len(stack) > MAX_DEPTH:
                    # Refused where the file is read. The parser takes for ever to get to its end.
                    raise yaml.YAMLError

    def _node(self, event: yaml.NodeEvent) -> _Node:
        if isinstance(event, yaml.AliasEvent):
            return self._anchors.get(event.anchor or "", _Node())
        node = _Node(isinstance(event, yaml.SequenceStartEvent))
        if event.anchor:
            self._anchors[event.anchor] = node
        return node


def _member(node: _Node, name: str) -> tuple[Place, _Node] | None:
    if name in node.members:
        return node.members[name]
    for source in node.merged:
        for each in [member for _, member in source.members.values()] if source.is_list else [source]:
            if (found := _member(each, name)) is not None:
                return found
    return None


def _key(event: yaml.NodeEvent) -> tuple[str, Place]:
    if not isinstance(event, yaml.ScalarEvent):
        # Refused where the file is read; its places end here.
        raise yaml.YAMLError
    merges = event.value == "<<" and event.implicit[0]
    return "<<" if merges else child("", event.value), _place(event)


def _add(parent: _Node, node: _Node, event: yaml.NodeEvent) -> None:
    if parent.is_list:
        parent.members[f"[{len(parent.members)}]"] = _place(event), node
        return
    assert parent.key is not None
    name, place = parent.key
    parent.key = None
    if name == "<<":
        parent.merged.append(node)
    else:
        # The last of repeated keys is the one that counts.
        parent.members[name] = place, node


def _place(event: yaml.NodeEvent) -> Place:
    assert event.start_mark is not None
    return Place(event.start_mark.line + 1, event.start_mark.column + 1)
