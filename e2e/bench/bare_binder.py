"""Program: posts answers it already knows, with bayplan's own client. No scheduler on that client can be faster.

Each pod costs what a scheduler writes for it: a Binding, and after it a Scheduled Event. It stays after the last
one, so that its CPU time and memory can be read, until it is told to end.
"""

import argparse
import asyncio
import signal
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bayplan.api.client import ApiClient
from bayplan.api.credentials import load_credentials
from bayplan.api.meta_objects import ObjectMeta
from bayplan.api.objects import Pod, PodSpec
from bayplan.api.response import ApiCall
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import Binding
from bayplan.scheduler.api_calls import binding_call
from bayplan.scheduler.event_recorder import EventRecorder
from e2e.bench.created import Created, read_created
from e2e.bench.workload import BURST, QPS, SCHEDULER_NAME, packed_node

# bayplan's own limits on requests in flight: a limit that bayplan could beat would be none.
_BIND_WORKERS, _EVENT_WORKERS = 32, 16


class _BareBinder:
    def __init__(self, client: ApiClient, events_client: ApiClient, namespace: str) -> None:
        self._client = client
        self._events_client = events_client
        self._namespace = namespace
        self._calls: asyncio.Queue[ApiCall] = asyncio.Queue()
        self._recorder = EventRecorder(
            emit=lambda uid, call, if_missing=None, *, repeatable=False: self._calls.put_nowait(call),
            now=lambda: datetime.now(UTC),
            hostname=socket.gethostname(),
        )

    async def run(self, answers: Iterator[tuple[Created, str]]) -> None:
        """Writes all Bindings and all Events."""
        async with asyncio.TaskGroup() as group:
            events = [group.create_task(self._send_events()) for _ in range(_EVENT_WORKERS)]
            await asyncio.gather(*(self._bind(answers) for _ in range(_BIND_WORKERS)))
            await self._calls.join()
            for task in events:
                task.cancel()

    async def _bind(self, answers: Iterator[tuple[Created, str]]) -> None:
        for created, node_name in answers:
            await _send(self._client, binding_call(Binding(self._namespace, created.name, created.uid, node_name)))
            metadata = ObjectMeta(name=created.name, namespace=self._namespace, uid=created.uid)
            self._recorder.scheduled(PodInfo(Pod(metadata, PodSpec(scheduler_name=SCHEDULER_NAME))), node_name)

    async def _send_events(self) -> None:
        while True:
            await _send(self._events_client, await self._calls.get())
            self._calls.task_done()


async def _send(client: ApiClient, call: ApiCall) -> None:
    answer = await client.request(call.method, call.path, body=call.body, content_type=call.content_type)
    if answer.status != 201:
        raise RuntimeError(f"{call.method} {call.path}: {answer.status} {answer.body[:500]!r}")


async def _run(options: argparse.Namespace) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    credentials = load_credentials(options.kubeconfig)
    client, events_client = (ApiClient(credentials, qps=QPS, burst=BURST) for _ in range(2))
    pods = sorted(read_created(options.pods), key=lambda created: created.name)
    answers = ((created, packed_node(index)) for index, created in enumerate(pods))
    await _BareBinder(client, events_client, options.namespace).run(answers)
    await stop.wait()
    await client.close()
    await events_client.close()


def main() -> None:
    """Binds the pods of `--pods`, a file that `load` wrote."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--pods", type=Path, required=True)
    asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()
