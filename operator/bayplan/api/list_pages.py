"""All objects of a list, page by page."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final

from bayplan.api.meta_objects import is_later_version
from bayplan.api.watch_source import (
    MAX_PAGE_BYTES,
    AnswerError,
    BrokenStreamError,
    ListPage,
    PageTooLargeError,
)

PAGE_SIZE: Final = 500
# Of the bytes that a page may have, so that objects a little larger than the last ones fit as well.
_AIM_BYTES: Final = MAX_PAGE_BYTES * 3 // 4
_SHRINKING: Final = 8


async def list_pages(
    ask: Callable[[Mapping[str, str]], Awaitable[ListPage]],
    query: Mapping[str, str] | None = None,
    *,
    page_size: int = PAGE_SIZE,
    restarts: int = 0,
) -> AsyncGenerator[tuple[bool, ListPage], None]:
    """Yield the pages of a list that `ask`, a `WatchSource.page`, gives, each with whether it is the first.

    Whoever lists relies on it for its bound of memory: a page has at most `page_size` objects, fewer where they are
    large, and a page that turns out too large is given up and asked for in smaller ones. A first page makes void what
    came before: a list that outlives its version is begun anew `restarts` times, the last time in one piece, which
    has no bound.

    Raises: what `ask` raises, also 410 when no restart is left; BrokenStreamError where a continue token is repeated.
    """
    limit, token = page_size, ""
    while True:
        try:
            page = await ask(
                {**(query or {})} | ({"limit": str(limit)} if limit else {}) | ({"continue": token} if token else {})
            )
        except PageTooLargeError:
            limit = max(1, limit // _SHRINKING)
            continue
        except AnswerError as error:
            if error.status != HTTPStatus.GONE or not token or not restarts:
                raise
            restarts -= 1
            limit, token = page_size if restarts else 0, ""
            continue
        yield not token, page
        if not page.metadata.continue_:
            return
        if page.metadata.continue_ == token:
            raise BrokenStreamError("the list repeats its continue token")
        token = page.metadata.continue_
        items = page.items or ()
        size = sum(memoryview(raw).nbytes for raw in items)
        limit = min(page_size, 2 * limit, max(1, _AIM_BYTES * len(items) // size) if size else page_size)


class VersionHistory:
    """The latest resourceVersion that was seen of one kind.

    Versions of consistent lists never go back, unless etcd was restored from a backup: everything known since then is
    of a history that did not happen. Reflector and IntakeList rely on it.
    """

    def __init__(self) -> None:
        self._latest = ""

    def seen(self, version: str) -> None:
        """Take the version of a list or an event; "" says nothing."""
        self._latest = version or self._latest

    def went_back(self, version: str) -> bool:
        """Take the version of a consistent list, and return whether a later one was seen before.

        Versions that are no decimal numbers have no order, and never went back.
        """
        latest, self._latest = self._latest, version
        return latest.isdecimal() and version.isdecimal() and is_later_version(latest, version)

    def forget(self) -> None:
        """Know of no version: another history begins."""
        self._latest = ""
