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
    made = ApiClient(Credentials(server=server.url))
    yield made
    await made.close()


@pytest.fixture(scope="module")
def _collected_at_the_end():
    """What processes froze is looked at again; among the objects of all tests that takes a second."""
    yield
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # what lives until the end, as before the module


@pytest.fixture
def process_as_it_was(_collected_at_the_end):
    """What a process does once is undone: signal handlers, and with the module frozen objects."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
async def cluster(server, process_as_it_was):
    made = Cluster(server)
    yield made
    made.running.cancel()
    await asyncio.gather(made.running, return_exceptions=True)
