"""All objects of a list, page by page."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final

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
