import logging

import aiohttp
from tests.api.clients import POD
from tests.controller.kubernetes_api import KubernetesApi

from bayplan.api.credentials import Credentials
from bayplan.config.load import default_configuration
from bayplan.controller.build import build


async def test_a_password_in_the_servers_url_is_in_no_metric_and_no_log(caplog):
    caplog.set_level(logging.DEBUG)
    async with KubernetesApi() as server:
        parts = build(default_configuration(), Credentials(server=server.url.replace("//", "//me:topsecret@")))
        port = await parts.serving.server.start("127.0.0.1", 0)
        await parts.intake_list.client.request("GET", POD)
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
            text = await answer.text()
        await parts.serving.stop()
        for client in parts.clients:
            await client.close()
    assert f'host="{server.url.removeprefix("http://")}"' in text
    assert "topsecret" not in text
    assert "topsecret" not in caplog.text
