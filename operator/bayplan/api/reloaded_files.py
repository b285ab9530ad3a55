"""What is made of files, made anew when they change."""

import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from bayplan.api.errors import CredentialsError
from bayplan.api.kubeconfig import PemSource

LOOK_SECONDS = 1.0

T = TypeVar("T")


class ReloadedFiles(Generic[T]):
    """Holds what `make` returns for the content of `sources`, at most `look_seconds` behind the files when asked.

    Credentials and ServingTls rely on it. What was made stays where a file cannot be read or `make` raises
    CredentialsError, as between the two halves of a rotation. That is told once for each state of the files, and tried
    again at each look, for it may have been the process that was short of something. `tell` gets the error, None where
    something new was made. Nobody looks at the files until `current` is called. A source that is None has no content.
    `clock` is monotonic, in seconds.

    Raises:
        CredentialsError: the first time; with `names` it begins with the flags and the files.
    """

    def __init__(
        self,
        sources: Sequence[PemSource | None],
        make: Callable[..., T],
        tell: Callable[[Exception | None], None] = lambda error: None,
        *,
        names: bool = True,
        look_seconds: float = LOOK_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sources = tuple(sources)
        self._names = ", ".join(each.name for each in self._sources if each is not None) if names else ""
        self._make = make
        self._tell = tell
        self._look_seconds = look_seconds
        self._clock = clock
        self._signatures = self._look()
        self._content = self._read()
        self._made = self._make_of(self._content)
        self._failed = False
        self._next_look = clock() + look_seconds

    def current(self) -> T:
        """Return what the files make now; the same object as before while their content is the same."""
        now = self._clock()
        if now >= self._next_look:
            self._next_look = now + self._look_seconds
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
                self._tell(error)
            return
        self._failed = False
        if is_changed:
            self._content = content
            self._tell(None)

    def _make_of(self, content: Sequence[bytes | None]) -> T:
        try:
            return self._make(*content)
        except CredentialsError as error:
            if not self._names:
                raise
            raise CredentialsError(f"{self._names}: {error}") from error

    def _look(self) -> list[tuple[int, int, int] | None]:
        return [None if each is None else each.signature() for each in self._sources]

    def _read(self) -> list[bytes | None]:
        return [None if each is None else each.read() for each in self._sources]
