"""When the next TLS handshake may begin: it takes the loop from the scheduler, with a large key for milliseconds."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from bayplan.api.errors import CredentialsError

AHEAD_SECONDS: Final = 0.25
"""How many handshakes may begin at once: as many as this time has."""
# `python -m e2e.bench.handshakes`: what is paid beside a connection with a key on P-256, which is 1.
_RSA_2048_MORE: Final = 0.4
_LARGE_CURVE_MORE: Final = 1.0
_P256_BITS: Final = 256


class HandshakeTurns:
    """Bounds the handshakes a second, and lets peers take turns, so that who floods the port waits for itself.

    HttpServer relies on it: a kubelet's probe waits for one handshake of each other peer at most. `per_second` is how
    many of cost 1 there may be; `cost` is asked at each. `clock` is monotonic, in seconds.
    """

    def __init__(
        self,
        per_second: float,
        cost: Callable[[], float],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._per_second = per_second
        self._cost = cost
        self._clock = clock
        self._sleep = sleep
        # Dictionaries keep the order of coming: who had a turn goes to the end.
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        self._paid_until = clock()
        self._giving: asyncio.Task[None] | None = None

    async def wait(self, peer: str) -> None:
        """Wait for a turn; of one peer, who came last is first. Who is cancelled before it takes none."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(peer, []).append(turn)
        if self._giving is None:
            self._giving = asyncio.create_task(self._give())
        try:
            await turn
        except asyncio.CancelledError:
            self._leave(peer, turn)
            raise

    async def _give(self) -> None:
        try:
            while self._waiting:
                early = self._paid_until - AHEAD_SECONDS - self._clock()
                if early > 0.0:
                    # Who comes or leaves meanwhile is looked at afterwards.
                    await self._sleep(early)
                elif not (turn := self._next()).done():
                    self._paid_until = max(self._paid_until, self._clock()) + self._cost() / self._per_second
                    turn.set_result(None)
        finally:
            # Who was cancelled may have a successor already.
            if self._giving is asyncio.current_task():
                self._giving = None

    def _next(self) -> asyncio.Future[None]:
        peer = next(iter(self._waiting))
        own = self._waiting.pop(peer)
        # Of too many connections of a peer the oldest is closed, so a turn would be wasted on it.
        turn = own.pop()
        if own:
            self._waiting[peer] = own
        return turn

    def _leave(self, peer: str, turn: asyncio.Future[None]) -> None:
        own = self._waiting.get(peer)
        if own is None or turn not in own:
            return
        own.remove(turn)
        if not own:
            del self._waiting[peer]
        if not self._waiting and self._giving is not None:
            self._giving.cancel()
            self._giving = None


def handshake_cost(certificates: bytes) -> float:
    """Return what a connection costs whose server shows the first of some PEM certificates, next to one on P-256.

    Signing with RSA takes time by the third power of the key's length.

    Raises:
        CredentialsError: the certificate is of a kind that OpenSSL may know, but Go and kube-scheduler do not.
    """
    # Loading it takes time and memory, which is for those who serve HTTPS.
    from cryptography import x509  # noqa: PLC0415
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec, rsa  # noqa: PLC0415

    try:
        key = x509.load_pem_x509_certificate(certificates).public_key()
    except (ValueError, UnsupportedAlgorithm) as error:
        raise CredentialsError("the serving certificate is of a kind that is not supported") from error
    if isinstance(key, rsa.RSAPublicKey):
        return 1.0 + _RSA_2048_MORE * (key.key_size / 2048) ** 3
    if isinstance(key, ec.EllipticCurvePublicKey) and key.key_size > _P256_BITS:
        return 1.0 + _LARGE_CURVE_MORE
    return 1.0
