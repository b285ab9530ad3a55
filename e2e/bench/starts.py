"""Starts and stops `bayplan run` again and again against a fake API server, and counts how it ended.

`python -m e2e.bench.starts --count 1000`. SIGTERM comes at a moment drawn by chance, before it is ready or while it
binds, and the exit code must always be 0. What ended otherwise is shown with the end of its log.
"""

import argparse
import asyncio
import json
import logging
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.controller.kubernetes_api import NODES, PODS, KubernetesApi, node, pod

from e2e.controlplane.bayplan_process import heedless_flags

REPOSITORY = Path(__file__).resolve().parents[2]
# From its first line on; a start takes about a second, so some are ended before they are ready.
LATEST_SECONDS = 2.0
PODS_AT_ONCE = 20
GIVEN_UP_SECONDS = 60.0
SHOWN_LINES = 30


@dataclass
class Endings:
    """How the processes ended: `codes` by exit code, `ready` those that were ready when they were told to end."""

    codes: Counter[int] = field(default_factory=Counter)
    ready: int = 0
    logs: list[str] = field(default_factory=list)

    def add(self, code: int, log: str, *, seed: float) -> None:
        self.codes[code] += 1
        self.ready += "caches synced" in log
        if self.codes.total() % 10 == 0:
            print(f"{self.codes.total()} ended: {dict(self.codes)}", file=sys.stderr, flush=True)
        if code != 0 or "Traceback" in log:
            tail = "\n".join(log.splitlines()[-SHOWN_LINES:])
            self.logs.append(f"--- exit code {code}, told to end after {seed:.3f} s\n{tail}")


def write_kubeconfig(folder: Path, url: str) -> Path:
    path = folder / "kubeconfig"
    document = {
        "current-context": "fake",
        "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": ""}}],
        "clusters": [{"name": "fake", "cluster": {"server": url}}],
    }
    path.write_text(json.dumps(document))  # JSON is YAML
    return path


async def start_and_stop(checkout: Path, kubeconfig: Path, after: float) -> tuple[int, str]:
    """Runs one process, ends it `after` seconds after its first line, and returns its exit code and its log."""
    command = (
        "-X",
        "faulthandler",
        "-m",
        "bayplan",
        "run",
        "--kubeconfig",
        str(kubeconfig),
        "--secure-port=0",
        "--http-port=0",
        *heedless_flags(checkout),
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        env={**os.environ, "PYTHONPATH": str(checkout / "operator")},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    first = await process.stderr.readline()
    reading = asyncio.create_task(process.stderr.read())
    await asyncio.sleep(after)
    process.send_signal(signal.SIGTERM)
    try:
        rest = await asyncio.wait_for(reading, GIVEN_UP_SECONDS)
        code = await asyncio.wait_for(process.wait(), GIVEN_UP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
        return -int(signal.SIGKILL), "it did not end"
    return code, (first + rest).decode(errors="replace")


async def keep_busy(server: KubernetesApi) -> None:
    """Has always some pods to bind, to reject and to forget."""
    number = 0
    while True:
        server.objects[PODS] = {}
        for _ in range(PODS_AT_ONCE):
            number += 1
            server.put(PODS, pod(f"p{number}", cpu="1" if number % 4 else "64"))
        await asyncio.sleep(0.2)


async def measure(checkout: Path, count: int, at_once: int, seed: int) -> Endings:
    rng = random.Random(seed)
    endings = Endings()
    async with KubernetesApi() as server:
        for number in range(10):
            server.put(NODES, node(f"n{number}", cpu="1000"))
        with tempfile.TemporaryDirectory() as folder:
            kubeconfig = write_kubeconfig(Path(folder), server.url)
            moments = iter([rng.uniform(0.0, LATEST_SECONDS) for _ in range(count)])

            async def some() -> None:
                for after in moments:
                    code, log = await start_and_stop(checkout, kubeconfig, after)
                    endings.add(code, log, seed=after)

            busy = asyncio.create_task(keep_busy(server))
            await asyncio.gather(*(some() for _ in range(at_once)))
            busy.cancel()
    return endings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--checkout", type=Path, default=REPOSITORY, help="whose source runs")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    # The fake server's: processes that end leave their requests behind.
    logging.disable()
    endings = asyncio.run(measure(arguments.checkout, arguments.count, arguments.at_once, arguments.seed))
    print("\n".join(endings.logs))
    print(f"{arguments.count} starts and stops, {endings.ready} of them ready: exit codes {dict(endings.codes)}")
    return 0 if endings.codes.keys() == {0} else 1


if __name__ == "__main__":
    sys.exit(main())
