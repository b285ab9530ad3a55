"""What TLS handshakes of strangers take from decisions: `python -m e2e.bench.handshakes --key rsa4096`.

Places pods in slices of 10 ms on the loop that also serves HTTPS with a key of that kind, while another process
connects as often as it can, from a few addresses of this machine, and closes each connection after it. Prints
which share of the loop's CPU time did not go to decisions, the handshakes a second, and how long probes from another
address took.
"""

import argparse
import asyncio
import contextlib
import multiprocessing
import ssl
import sys
import time
from collections.abc import AsyncIterator

import uvloop
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from prometheus_client import CollectorRegistry

from bayplan.scheduler.attempt import AttemptRunner
from bayplan.server.access import Security
from bayplan.server.health import HealthChecks
from bayplan.server.http import HttpServer
from bayplan.server.options import AuthenticationOptions, AuthorizationOptions
from bayplan.server.reviews import Reviews
from bayplan.server.serving_tls import ServingTls, checked_identity, signed
from e2e.bench.scrapes import scheduler_with_pods

SLICE_SECONDS = 0.01
KEYS = {"p256": 0, "rsa2048": 2048, "rsa4096": 4096}
PROBER = "127.0.0.9"


def identity(kind: str) -> bytes:
    """Returns a certificate for this machine and its key."""
    bits = KEYS[kind]
    key = rsa.generate_private_key(65537, bits) if bits else ec.generate_private_key(ec.SECP256R1())
    return checked_identity(*signed(key, "127.0.0.1"))


def anybody() -> ssl.SSLContext:
    """Returns a client's context that takes any server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def flood(port: int, addresses: int, counted: "multiprocessing.sharedctypes.Synchronized[int]") -> None:
    """Connects for ever, from 64 tasks."""

    async def connect(number: int) -> None:
        context = anybody()
        local = (f"127.0.0.{10 + number % addresses}", 0)
        while True:
            with contextlib.suppress(OSError, ssl.SSLError, TimeoutError):
                _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, local_addr=local)
                with counted:
                    counted.value += 1
                writer.close()

    async def all_of_them() -> None:
        await asyncio.gather(*(connect(number) for number in range(64)))

    asyncio.run(all_of_them())


async def probe(port: int, took: list[float]) -> None:
    """Asks for /livez once a second, on a connection of its own, and writes down the seconds each took."""
    context = anybody()
    while True:
        began = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, local_addr=(PROBER, 0))
        writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        await reader.read()
        took.append(time.perf_counter() - began)
        writer.close()
        await asyncio.sleep(1.0)


async def decide(runner: AttemptRunner) -> float:
    """Takes all decisions in slices, as the scheduling loop does; returns the share of its CPU time beside them."""
    began, deciding = time.thread_time(), 0.0
    while True:
        started, until = time.thread_time(), time.perf_counter() + SLICE_SECONDS
        while time.perf_counter() < until:
            if runner.run() is None:
                return 1.0 - deciding / (time.thread_time() - began)
        deciding += time.thread_time() - started
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def serving(kind: str) -> AsyncIterator[int]:
    """A secure port whose paths are open to everybody; yields its number."""
    pem = identity(kind)
    tls = ServingTls(lambda: pem, lambda: None)
    reviews = Reviews(None, None)  # type: ignore[arg-type]  # nobody is asked
    security = Security(tls, reviews, AuthenticationOptions(), AuthorizationOptions(always_allow_paths=("/*",)))
    server = HttpServer(CollectorRegistry(), HealthChecks())
    try:
        yield await server.start("127.0.0.1", 0, security)
    finally:
        await server.stop()


async def measure(runner: AttemptRunner, options: argparse.Namespace) -> str:
    """Returns one line of figures."""
    async with serving(options.key) as port:
        spawning = multiprocessing.get_context("spawn")
        counted = spawning.Value("i", 0)
        stranger = spawning.Process(target=flood, args=(port, options.addresses, counted), daemon=True)
        stranger.start()
        while not counted.value:  # noqa: ASYNC110  another process counts
            await asyncio.sleep(0.1)
        took: list[float] = []
        probing = asyncio.create_task(probe(port, took))
        before, began = counted.value, time.perf_counter()
        share = await decide(runner)
        seconds = time.perf_counter() - began
        handshakes = (counted.value - before) / seconds
        probing.cancel()
        stranger.terminate()
        stranger.join()
    return (
        f"{options.key}, {options.addresses} addresses: {handshakes:.0f} handshakes a second for {seconds:.0f} s took "
        f"{100 * share:.0f} % of the loop; of {len(took)} probes the slowest took "
        f"{1e3 * max(took, default=float('nan')):.0f} ms\n"
    )


def main() -> None:
    """Measure and print one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--key", choices=KEYS, default="rsa4096")
    parser.add_argument("--addresses", type=int, default=1)
    parser.add_argument("--pods", type=int, default=60_000)
    options = parser.parse_args()
    _, runner = scheduler_with_pods(5000, options.pods)
    sys.stdout.write(uvloop.run(measure(runner, options)))


if __name__ == "__main__":
    main()
