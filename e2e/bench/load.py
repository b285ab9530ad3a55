"""Program: creates nodes or pods, as fast as they are taken or at a fixed rate, and writes down when."""

import argparse
import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

from bayplan.api.client import ApiClient
from bayplan.api.credentials import load_credentials
from bayplan.cli.process import end_process
from e2e.bench.created import Created, write_created
from e2e.bench.workload import bench_node, bench_pod
from e2e.controlplane.client import Object, path_of

_WORKERS = 32
_TIMEOUT_SECONDS = 60.0


class _Loader:
    def __init__(self, client: ApiClient, path: str) -> None:
        self._client = client
        self._path = path
        self.created: list[Created] = []

    async def create(self, document: Object) -> None:
        body = json.dumps(document).encode()
        sent = time.monotonic()
        answer = await self._client.request("POST", self._path, body=body, timeout_seconds=_TIMEOUT_SECONDS)
        answered = time.monotonic()
        if answer.status != 201:
            raise RuntimeError(f"POST {self._path}: {answer.status} {answer.body[:500]!r}")
        metadata = json.loads(answer.body)["metadata"]
        self.created.append(Created(metadata["name"], metadata["uid"], sent, answered))

    async def at_full_speed(self, documents: Iterator[Object]) -> None:
        """Creates with some requests in flight at any time."""

        async def work() -> None:
            for document in documents:
                await self.create(document)

        async with asyncio.TaskGroup() as group:
            for _ in range(_WORKERS):
                group.create_task(work())

    async def at_rate(self, documents: Iterator[Object], rate: float) -> None:
        """Sends on the beat, whether or not earlier requests were answered."""
        await self._client.request("GET", "/readyz")  # connected before the clock starts
        started = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for index, document in enumerate(documents):
                await asyncio.sleep(max(0.0, started + index / rate - time.monotonic()))
                group.create_task(self.create(document))


async def _run(options: argparse.Namespace) -> None:
    indices = range(options.first, options.first + options.count)
    client = ApiClient(load_credentials(options.kubeconfig))
    if options.namespace is None:
        loader = _Loader(client, path_of("nodes"))
        documents = (bench_node(index) for index in indices)
    else:
        loader = _Loader(client, path_of("pods", namespace=options.namespace))
        documents = (bench_pod(index, options.namespace, options.on_nodes) for index in indices)
        if options.documents is not None:
            documents = (json.loads(line) for line in options.documents.read_bytes().splitlines())
    try:
        if options.rate:
            await loader.at_rate(documents, options.rate)
        else:
            await loader.at_full_speed(documents)
    finally:
        await client.close()
    write_created(options.output, loader.created)


def main() -> None:
    """Creates pods in `--namespace`, or nodes without it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--namespace")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--documents", type=Path, help="JSON lines: the pods to create in place of made-up ones")
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--on-nodes", type=int, default=0, help="so many nodes hold the pods already, all alike")
    parser.add_argument("--output", type=Path, required=True)
    asyncio.run(_run(parser.parse_args()))
    end_process(0)


if __name__ == "__main__":
    main()
