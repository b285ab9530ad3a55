"""What happens to a cluster while the writes of a scheduler are counted: taints that flap, pods that come and go."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Self

from bayplan.api.client import ApiClient
from bayplan.api.credentials import load_credentials
from e2e.controlplane.client import Object, path_of

_WORKERS = 32
_TIMEOUT_SECONDS = 60.0
_TAINT = {"key": "example.com/flaps", "effect": "NoSchedule"}
_MERGE_PATCH = "application/merge-patch+json"


class Churn:
    """Changes a cluster as its administrators and users would; every method is a coroutine of its own client."""

    def __init__(self, kubeconfig: Path) -> None:
        self._client = ApiClient(load_credentials(kubeconfig))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def create(self, resource: str, documents: Iterable[Object]) -> None:
        """Creates objects as fast as they are taken."""
        left = iter(documents)

        async def work() -> None:
            for document in left:
                path = path_of(resource, namespace=document["metadata"].get("namespace"))
                await self._send("POST", path, document)

        async with asyncio.TaskGroup() as group:
            for _ in range(_WORKERS):
                group.create_task(work())

    async def taint(self, node: str, *, tainted: bool) -> None:
        """Has a node repel pods, or no longer."""
        await self._send("PATCH", path_of("nodes", node), {"spec": {"taints": [_TAINT] if tainted else None}})

    async def delete_pod(self, namespace: str, name: str) -> None:
        """Ends a pod at once."""
        await self._send("DELETE", path_of("pods", name, namespace=namespace), {"gracePeriodSeconds": 0})

    async def on_the_beat(self, rate: float, seconds: float, act: Callable[[int], Awaitable[None]]) -> None:
        """Acts so many times a second, whether or not earlier acts have ended."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        async with asyncio.TaskGroup() as group:
            for beat in range(round(rate * seconds)):
                await asyncio.sleep(max(0.0, started + beat / rate - loop.time()))
                group.create_task(_run(act(beat)))

    async def _send(self, method: str, path: str, document: Object) -> None:
        content_type = _MERGE_PATCH if method == "PATCH" else "application/json"
        answer = await self._client.request(
            method,
            path,
            body=json.dumps(document).encode(),
            content_type=content_type,
            timeout_seconds=_TIMEOUT_SECONDS,
        )
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {answer.body[:500]!r}")


async def _run(act: Awaitable[None]) -> None:
    await act
