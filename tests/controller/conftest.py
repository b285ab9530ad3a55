"""A fake API server that kopf can start on, and a client of it."""

import pytest
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
