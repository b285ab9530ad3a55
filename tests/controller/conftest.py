"""A fake API server that kopf can start on, a client of it, and a scheduler that runs against it."""

import asyncio
import gc
import signal

import pytest
from tests.controller.app_scene import Cluster
from tests.controller.kubernetes_api import KubernetesApi

from bayplan.api.client import ApiClient
from bayplan.api.credentials import Credentials


@pytest.fixture
async def server():
    async with KubernetesApi() as running:
        yield running


@pytest.fixture
async def client(server):
    made = ApiClient(Credentials(server=server.url), qps=0, burst=1)
    yield made
    await made.close()


@pytest.fixture
def process_as_it_was():
    """What a process does once is undone: frozen objects, signal handlers."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # what lives until the end, as before the test
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
async def cluster(server, process_as_it_was):
    made = Cluster(server)
    yield made
    made.running.cancel()
    await asyncio.gather(made.running, return_exceptions=True)
