"""The PriorityClasses that pods may name which somebody asks about."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from bayplan.api.workload_objects import PriorityClass


class KnownClasses(NamedTuple):
    """The cluster's PriorityClasses, or none and the `problem` because of which they are not known."""

    classes: Sequence[PriorityClass] = ()
    problem: str = ""


ReadClasses = Callable[[], Awaitable[KnownClasses]]


def always(classes: Sequence[PriorityClass]) -> ReadClasses:
    """Return what gives the same classes each time, as those of files are."""

    async def read() -> KnownClasses:
        return KnownClasses(classes)

    return read
