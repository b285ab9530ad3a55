"""What bytes of strangers take from decisions: `python -m e2e.bench.strangers --attack lines`.

Places pods in slices of 10 ms on the loop that also serves HTTPS, while another process sends what nobody should, as
fast as it is taken. Prints the loop's CPU time that did not go to decisions, how much larger the process became, and
how many probes from another address were answered within a second.
"""

import argparse
import asyncio
import contextlib
import multiprocessing
import resource
import socket
import ssl
import sys
import threading
import time

import uvloop

from bayplan.scheduler.attempt import AttemptRunner
from e2e.bench.handshakes import PROBER, anybody, decide, serving
from e2e.bench.scrapes import scheduler_with_pods

PROBE_SECONDS = 1.0
_HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"
_FIELDS = b"".join(b"h%d: " % number + b"a" * 8000 + b"\r\n" for number in range(60))
ATTACKS = {
    "nothing": (b"", b""),
    "silent": (b"", b""),
    "pipelined": (b"", _HEAD + _FIELDS + b"\r\n"),
    "lines": (b"", b"\r\n" * 65_536),
    "body": (b"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n", b"x" * 262_144),
    "expect": (b"", (_HEAD + b"Expect: x\r\n\r\n") * 200),
    "records": (b"", b"a"),
}
"""What each of them begins with, and then sends for ever; `records` sends each byte in a record of TLS."""


def attack(port: int, kind: str, connections: int, begun: "multiprocessing.synchronize.Event") -> None:
    """Attacks for ever, from as many threads as there are connections."""
    if kind == "silent":
        asyncio.run(_say_nothing(port, connections))
    threads = [threading.Thread(target=_send, args=(port, *ATTACKS[kind], begun)) for _ in range(connections)]
    for thread in threads:
        thread.start()


def _send(port: int, first: bytes, endless: bytes, begun: "multiprocessing.synchronize.Event") -> None:
    while True:
        with contextlib.suppress(OSError):
            plain = socket.create_connection(("127.0.0.1", port), timeout=5.0)
            with anybody().wrap_socket(plain) as connection:
                threading.Thread(target=_read, args=(connection,), daemon=True).start()
                connection.sendall(first)
                while True:
                    begun.set()
                    connection.sendall(endless)


def _read(connection: ssl.SSLSocket) -> None:
    with contextlib.suppress(OSError, ValueError):
        while connection.recv(65_536):
            pass


async def _say_nothing(port: int, addresses: int) -> None:
    async def connect(number: int) -> None:
        loop = asyncio.get_running_loop()
        while True:
            with contextlib.suppress(OSError, TimeoutError), socket.socket() as plain:
                plain.setblocking(False)
                plain.bind((f"127.1.{number // 250}.{number % 250 + 1}", 0))
                async with asyncio.timeout(2.0):
                    await loop.sock_connect(plain, ("127.0.0.1", port))
                    await loop.sock_recv(plain, 1)
            await asyncio.sleep(0.02)

    await asyncio.gather(*(connect(number) for number in range(addresses)))


async def probe(port: int, answered: list[bool]) -> None:
    """Asks for /livez every second, on a connection of its own, and writes down whether the answer came in time."""
    while True:
        answer = b""
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(PROBE_SECONDS):
                reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=anybody(), local_addr=(PROBER, 0))
                writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                answer = await reader.read(12)
                writer.close()
        answered.append(answer == b"HTTP/1.1 200")
        await asyncio.sleep(1.0)


def _largest() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


async def measure(runner: AttemptRunner, options: argparse.Namespace) -> str:
    """Returns one line of figures."""
    async with serving("p256") as port:
        spawning = multiprocessing.get_context("spawn")
        begun = spawning.Event()
        arguments = (port, options.attack, options.connections, begun)
        stranger = spawning.Process(target=attack, args=arguments, daemon=True)
        before = _largest()
        if options.attack == "nothing":
            begun.set()
        else:
            stranger.start()
        waited_until = time.monotonic() + 5.0
        while not begun.is_set() and time.monotonic() < waited_until:  # noqa: ASYNC110  another process sets it
            await asyncio.sleep(0.1)
        answered: list[bool] = []
        probing = asyncio.create_task(probe(port, answered))
        began, used = time.perf_counter(), time.thread_time()
        beside = await decide(runner) * (time.thread_time() - used)
        seconds = time.perf_counter() - began
        probing.cancel()
        if stranger.is_alive():
            stranger.terminate()
            stranger.join()
    return (
        f"{options.attack}, {options.connections} connections for {seconds:.0f} s: {1e3 * beside / seconds:.0f} ms of "
        f"CPU a second and {_largest() - before} MiB; {sum(answered)} of {len(answered)} probes were answered within a "
        "second\n"
    )


def main() -> None:
    """Measure and print one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attack", choices=ATTACKS, default="lines")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--pods", type=int, default=60_000)
    options = parser.parse_args()
    _, runner = scheduler_with_pods(5000, options.pods)
    sys.stdout.write(uvloop.run(measure(runner, options)))


if __name__ == "__main__":
    main()
