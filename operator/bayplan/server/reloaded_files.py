"""Certificates that are read anew when they change: in PEM files, and as the cluster's API servers publish them."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

from bayplan.api.client import ApiClient, decode_status
from bayplan.api.errors import DECODE_ERRORS, AmbiguousError, CredentialsError, UnreachableError
from bayplan.api.kubeconfig import PemSource
from bayplan.server.serving_tls import checked_authorities

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0

T = TypeVar("T")

CONFIG_MAP = "kube-system/extension-apiserver-authentication"
AUTHORITIES_LOOK_SECONDS = 60.0
RETRY_SECONDS = 10.0
_TIMEOUT_SECONDS = 5.0
_KEY = "client-ca-file"
# From the API server's cache: how old it is matters less than what reading etcd costs.
_PATH = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication?resourceVersion=0"


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


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


_decoder = msgspec.json.Decoder(_ConfigMap)


class ClusterAuthorities:
    """Holds the authorities in `kube-system/extension-apiserver-authentication`, at most a minute behind it.

    ServingTls relies on it. Until they were read, and where there are none, no client certificate counts. What was
    read stays while it cannot be read.
    """

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._known: bytes | None = None
        self._problem: str | None = None

    def pem(self) -> bytes | None:
        """Return the authorities in PEM, None where none are known."""
        return self._known

    async def run(self) -> None:
        """Read them again and again until cancelled."""
        while True:
            pause = AUTHORITIES_LOOK_SECONDS
            try:
                await self.look_up()
            except CredentialsError as error:
                pause = RETRY_SECONDS
                if str(error) != self._problem:
                    logger.warning("client certificates are taken as before, or not at all reason=%s", error)
                self._problem = str(error)
            await asyncio.sleep(pause)

    async def look_up(self) -> None:
        """Read them once.

        Raises:
            CredentialsError: they cannot be read, with the reason.
        """
        try:
            answer = await self._client.request("GET", _PATH, timeout_seconds=_TIMEOUT_SECONDS)
            if answer.status != 200:
                raise CredentialsError(f"{CONFIG_MAP}: {answer.status} {decode_status(answer.body)[1]}")
            found = _decoder.decode(answer.body).data.get(_KEY, "").encode()
        except (AmbiguousError, UnreachableError) as error:
            raise CredentialsError(f"{CONFIG_MAP}: {error}") from error
        except (*DECODE_ERRORS, UnicodeEncodeError) as error:
            raise CredentialsError(f"{CONFIG_MAP}: the answer cannot be read") from error
        known = checked_authorities(found) if found else None
        if known != self._known:
            logger.info("client certificates are taken of the cluster's authorities configmap=%s", CONFIG_MAP)
        self._known, self._problem = known, None
