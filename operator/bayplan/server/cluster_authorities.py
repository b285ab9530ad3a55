"""Whose client certificates count, as the cluster's API servers publish it."""

import asyncio
import logging

import msgspec

from bayplan.api.client import ApiClient
from bayplan.api.errors import DECODE_ERRORS, AmbiguousError, CredentialsError, UnreachableError
from bayplan.api.response import decode_status
from bayplan.server.serving_tls import checked_authorities

logger = logging.getLogger(__name__)

CONFIG_MAP = "kube-system/extension-apiserver-authentication"
AUTHORITIES_LOOK_SECONDS = 60.0
RETRY_SECONDS = 10.0
_TIMEOUT_SECONDS = 5.0
_KEY = "client-ca-file"
# From the API server's cache: how old it is matters less than what reading etcd costs.
_PATH = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication?resourceVersion=0"


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
