from dataclasses import replace

import aiohttp
import pytest

from bayplan.api.credentials import Credentials
from bayplan.config.load import default_configuration
from bayplan.controller.build import build


@pytest.fixture
async def ask(server):
    """Starts the port of a scheduler whose watches do not run, and asks for /debug/cache and for the metrics."""
    servers = []

    async def ask(**settings):
        parts = build(replace(default_configuration(), **settings), Credentials(server=server.url))
        servers.append(parts.serving.server)
        url = f"http://127.0.0.1:{await parts.serving.server.start('127.0.0.1', 0)}"
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{url}/debug/cache") as answer:
                status, body = answer.status, await answer.text()
            async with session.get(f"{url}/metrics") as answer:
                return status, body, await answer.text()

    yield ask
    for each in servers:
        await each.stop()


async def test_debug_cache_compares_what_the_process_holds_and_the_metric_follows(ask):
    status, body, metrics = await ask()
    assert (status, '"differences":{}' in body) == (200, True)
    assert "bayplan_cache_comparisons_total 1.0" in metrics


async def test_without_profiling_there_is_no_debug_endpoint(ask):
    status, _, metrics = await ask(enable_profiling=False)
    assert status == 404
    assert "bayplan_cache_comparisons_total 0.0" in metrics
