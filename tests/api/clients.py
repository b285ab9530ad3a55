"""Clients that are closed when their test ends."""

import contextlib

from tests.waiting import Sleeps

from bayplan.api.client import ApiClient

POD = "/api/v1/namespaces/default/pods/a"


@contextlib.asynccontextmanager
async def calling(credentials, **options):
    client = ApiClient(credentials, **{"qps": 0, "burst": 1, "sleep": Sleeps(), **options})
    try:
        yield client
    finally:
        await client.close()
