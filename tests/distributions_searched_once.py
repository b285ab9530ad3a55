"""Which installed distributions offer plugins is looked up once for each `sys.path`, and not for each framework."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoints, entry_points

import pytest

from bayplan.plugins import out_of_tree


@contextmanager
def distributions_searched_once() -> Iterator[None]:
    """Has the block find what Python finds: a hundred distributions take longer than the rest of a framework."""

    @cache
    def found(path: tuple[str, ...], group: str) -> EntryPoints:
        return entry_points(group=group)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(out_of_tree, "entry_points", lambda *, group: found(tuple(sys.path), group))
        yield
