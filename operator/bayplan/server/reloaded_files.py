"""What is made of PEM files, and made anew when they change on disk."""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from bayplan.api.errors import CredentialsError
from bayplan.api.kubeconfig import PemSource

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0

T = TypeVar("T")


class ReloadedFiles(Generic[T]):
    """Holds what `make` returns for the content of `sources`, at most a second behind the files when asked.

    ServingTls relies on it. What was made stays where a file cannot be read or `make` raises CredentialsError, as
    between the two halves of a rotation; that is logged once for each state of the files, and tried again every second,
    for it may have been the process that was short of something. Nobody looks at them until
    `current` is called. `clock` is monotonic, in seconds.

    Raises:
        CredentialsError: the first time; it names the flags and the files.
    """

    def __init__(
        self,
        sources: Sequence[PemSource],
        make: Callable[..., T],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sources = tuple(sources)
        self._make = make
        self._clock = clock
        self._signatures = self._look()
        self._content = self._read()
        self._made = self._make_of(self._content)
        self._failed = False
        self._next_look = clock() + LOOK_SECONDS

    def current(self) -> T:
        """Return what the files make now; the same object as before while their content is the same."""
        now = self._clock()
        if now >= self._next_look:
            self._next_look = now + LOOK_SECONDS
            signatures = self._look()
            is_news = signatures != self._signatures
            if is_news or self._failed:
                self._signatures = signatures
                self._reload(is_news=is_news)
        return self._made

    def _reload(self, *, is_news: bool) -> None:
        try:
            content = self._read()
            is_changed = content != self._content
            if is_changed:
                self._made = self._make_of(content)
        except (CredentialsError, OSError) as error:
            self._failed = True
            if is_news:
                logger.warning("certificate not reloaded, the last one stays in use reason=%s", error)
            return
        self._failed = False
        if is_changed:
            self._content = content
            logger.info("certificate reloaded flags=%s", ", ".join(source.label for source in self._sources))

    def _make_of(self, content: Sequence[bytes]) -> T:
        try:
            return self._make(*content)
        except CredentialsError as error:
            raise CredentialsError(f"{', '.join(source.name for source in self._sources)}: {error}") from error

    def _look(self) -> list[tuple[int, int, int]]:
        return [source.signature() for source in self._sources]

    def _read(self) -> list[bytes]:
        return [source.read() for source in self._sources]
