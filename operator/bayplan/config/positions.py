"""Where in a file a field stands, worked out only for files in which something is to be remarked."""

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, TypeVar

from bayplan.config.bounded_yaml import MalformedYAMLError, Members, RefusedYAMLError, Rules, yaml_documents
from bayplan.config.document import MAX_DEPTH
from bayplan.config.errors import Place, Remark

_SEGMENT: Final = re.compile(r'\.?([A-Za-z0-9_\-]{1,64})|(\[[0-9]+\])|(\["(?:[^"\\]|\\.)*"\])')
# As many values as the largest of the files may hold. Mistakes are told where a file is read.
_RULES: Final = Rules(MAX_DEPTH, 20_000_000, lambda _place, _key: None, max_aliased=400_000)

AnyRemark = TypeVar("AnyRemark", bound=Remark)


class Positions:
    """The places of the fields of documents; from a document on that cannot be read nothing has one."""

    def __init__(self, data: bytes) -> None:
        self._documents: list[Any] = []
        self._members: Members = {}
        # Then one message tells of the whole file, and of the line.
        with suppress(MalformedYAMLError, RefusedYAMLError, UnicodeDecodeError):
            for _, value in yaml_documents(data.decode("utf-8-sig"), _RULES, self._members):
                self._documents.append(value)

    def place(self, path: str, document: int = 1) -> Place | None:
        """Return where the field at `path` begins: its key, or the element of a list. Documents count from 1.

        For one that is not there it is the nearest thing around it that is; None where nothing is.
        """
        found, end = None, 0
        value = self._documents[document - 1] if document <= len(self._documents) else None
        while match := _SEGMENT.match(path, end):
            member = self._members.get(id(value), {}).get(match[1] or match[2] or match[3])
            if member is None:
                break
            (found, value), end = member, match.end()
        return found

    def placed(self, remarks: Iterable[AnyRemark]) -> list[AnyRemark]:
        """Return the remarks with their places; those that have one keep it, and those of no field have none."""
        placed = []
        for each in remarks:
            place = self.place(each.path) if each.place is None else None
            placed.append(each if place is None else each.at(place))
        return placed
