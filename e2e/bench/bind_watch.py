"""When pods became bound, as a watch in a process of its own sees it: the clock of the benchmark.

The watch asks for bound pods only, so each pod arrives once, at its binding, and for metadata only: the reply is
shared with no contestant, so the API server does the same work for it whoever runs.
"""

import argparse
import json
import ssl
import sys
import time
from pathlib import Path
from typing import TextIO

from e2e.bench.programs import start_module
from e2e.controlplane.client import ApiClient, path_of
from e2e.controlplane.process import Process

_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_READY = "ready"
_BOUND = "spec.nodeName%21%3D"
_MAX_SECONDS = 7_200
_READ_BYTES = 1 << 16


class BindWatch:
    """Follows the bindings in one namespace from now on."""

    def __init__(self, kubeconfig: Path, namespace: str, directory: Path) -> None:
        self.bound_at: dict[str, float] = {}
        """The moment each bound pod was first seen so, by name, in monotonic seconds."""
        self._file = directory / "bound.txt"
        self._file.write_text("")
        self._read = 0
        arguments: list[str | Path] = ["--kubeconfig", kubeconfig, "--namespace", namespace, "--output", self._file]
        self._process: Process = start_module("bind-watch", "e2e.bench.bind_watch", arguments, directory)
        self._process.wait_ready(self._is_ready)

    def poll(self) -> int:
        """Takes in what arrived and returns how many pods are bound.

        Raises:
            RuntimeError: the watch broke off, so the times would be worthless.
        """
        with self._file.open("rb") as file:
            file.seek(self._read)
            data = file.read()
        complete = data.rfind(b"\n") + 1
        self._read += complete
        for line in data[:complete].decode().splitlines():
            name, _, moment = line.partition(" ")
            if name != _READY:
                self.bound_at.setdefault(name, float(moment))
        self._process.check_alive()
        return len(self.bound_at)

    def stop(self) -> None:
        """Ends the watch."""
        self._process.kill()
        self._process.wait()

    def _is_ready(self) -> bool:
        self.poll()
        return self._read > 0


def _client(kubeconfig: Path) -> ApiClient:
    document = json.loads(kubeconfig.read_text())
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
    tls.load_cert_chain(user["client-certificate"], user["client-key"])
    return ApiClient(cluster["server"], tls)


def _watch(kubeconfig: Path, namespace: str, output: Path) -> None:
    client = _client(kubeconfig)
    collection = path_of("pods", namespace=namespace)
    version = client.request("GET", f"{collection}?limit=1")["metadata"]["resourceVersion"]
    with output.open("w") as file:
        while True:
            # The API server ends watches that read too slowly; going on from the last event loses none.
            version = _follow(client, collection, version, file)


def _follow(client: ApiClient, collection: str, version: str, file: TextIO) -> str:
    """Write down what one watch tells and return the version to go on from."""
    query = f"watch=1&fieldSelector={_BOUND}&resourceVersion={version}&timeoutSeconds={_MAX_SECONDS}"
    connection = client.connect(timeout_seconds=_MAX_SECONDS)
    response = client.send(connection, f"{collection}?{query}", {"Accept": _METADATA})
    if response.status != 200:
        sys.exit(f"watch: {response.status} {response.read()[:500]!r}")
    file.write(f"{_READY} 0\n")
    file.flush()
    rest = b""
    while data := response.read1(_READ_BYTES):
        arrived = time.monotonic()
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            event = json.loads(line)
            if event["type"] == "ERROR":
                sys.exit(f"watch: {event['object']}")
            version = event["object"]["metadata"]["resourceVersion"]
            if event["type"] == "ADDED":
                file.write(f"{event['object']['metadata']['name']} {arrived:.6f}\n")
        file.flush()
    connection.close()
    return version


def main() -> None:
    """Writes `name seconds` for each pod of a namespace as it is bound, until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    _watch(options.kubeconfig, options.namespace, options.output)


if __name__ == "__main__":
    main()
