"""Lists the cluster's PriorityClasses when somebody asks what would come of a pod."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import aiohttp
import msgspec

from bayplan.api.credentials import Credentials
from bayplan.api.errors import DECODE_ERRORS, CredentialsError
from bayplan.api.list_pages import list_pages
from bayplan.api.watch_source import AnswerError, BrokenStreamError, WatchSource
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


PATH: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
MOST_CLASSES: Final = 1000
"""So many are read; clusters have some ten."""
_TIMEOUT_SECONDS: Final = 5.0

_decode: Final = msgspec.json.Decoder(PriorityClass).decode


@dataclass(eq=False)
class PriorityClassList:
    """Reads all classes anew for each question, so that scheduling, which needs none, neither waits for nor keeps any.

    Questions that come while they are read share what is read, so that however many ask, one list is open. A class that
    cannot be read counts as missing.
    """

    credentials: Credentials
    open_source: Callable[..., WatchSource] = WatchSource
    _reading: asyncio.Task[KnownClasses] | None = field(default=None, init=False)

    async def read(self) -> KnownClasses:
        """Return the classes, or why they are not known; questions are answered without them then."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read(), name="priority classes")
        return await asyncio.shield(self._reading)

    async def _read(self) -> KnownClasses:
        source = self.open_source(self.credentials, PATH, list_timeout=_TIMEOUT_SECONDS, inactivity=_TIMEOUT_SECONDS)
        listed, classes = 0, list[PriorityClass]()
        try:
            async for _, page in list_pages(source.page):
                items = page.items or ()
                listed += len(items)
                if listed > MOST_CLASSES:
                    return KnownClasses(problem=f"there are more than {MOST_CLASSES}")
                for raw in items:
                    with suppress(*DECODE_ERRORS):
                        classes.append(_decode(raw))
        except AnswerError as error:
            return KnownClasses(problem=f"the API server answers {error.status} to who lists them")
        except (BrokenStreamError, CredentialsError, aiohttp.ClientError, TimeoutError, OSError):
            return KnownClasses(problem="the API server does not answer")
        finally:
            await source.close()
        return KnownClasses(classes)
