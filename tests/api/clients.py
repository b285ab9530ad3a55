"""Clients that are closed when their test ends."""

import contextlib
import json

from tests.waiting import Sleeps

from bayplan.api.client import ApiClient

PODS = "/api/v1/pods"
POD = "/api/v1/namespaces/default/pods/a"
BINDING = json.dumps({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}).encode()


def put_pod(server):
    """Puts pod a on the API server, and returns that."""
    server.put(PODS, {"metadata": {"name": "a", "namespace": "default"}})
    return server


@contextlib.asynccontextmanager
async def calling(credentials, **options):
    client = ApiClient(credentials, **{"sleep": Sleeps(), **options})
    try:
        yield client
    finally:
        await client.close()
