import re
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from e2e.controlplane.kubernetes_version import kubernetes_version

from bayplan import __version__
from bayplan.config.known_feature_gates import KUBERNETES
from bayplan.server.zpages import configz_route, flagz_route, statusz_route

ROOT = Path(__file__).parents[2]


@pytest.fixture
async def get():
    clients = []

    async def get(route):
        app = web.Application()
        app.router.add_routes([route])
        clients.append(TestClient(TestServer(app)))
        await clients[-1].start_server()
        return await clients[-1].get(route.path)

    yield get
    for client in clients:
        await client.close()


async def test_configz_is_the_configuration_of_this_moment(get):
    answer = await get(configz_route(lambda: {"parallelism": 16}))
    assert await answer.json() == {"componentconfig": {"parallelism": 16}}
    assert answer.headers["Cache-Control"] == "no-store"


async def test_flagz_lists_flags_in_order_a_line_each(get):
    text = await (await get(flagz_route({"v": "2", "master": "a\nb"}))).text()
    assert text.startswith("\nbayplan flagz\n")
    assert text.endswith("\n\nmaster='a\\nb'\nv=2\n")


async def test_statusz_says_since_when_what_runs_and_where_to_look(get):
    text = await (await get(statusz_route(["/b", "/a"], "1.37", started_at=0.0, now=lambda: 3661.9))).text()
    found = dict(re.findall(r"^([A-Z][A-Za-z ]+): (.*)$", text, re.MULTILINE))
    assert text.startswith("\nbayplan statusz\n")
    assert (found["Started"], found["Up"]) == ("1970-01-01T00:00:00Z", "1 hr 01 min 01 sec")
    assert (found["Binary version"], found["Emulation version"], found["Paths"]) == (__version__, "1.37", "/a /b")


def test_the_version_that_it_behaves_as_is_the_one_it_is_tested_with():
    assert kubernetes_version(ROOT / "e2e/controlplane/go.mod").rpartition(".")[0] == KUBERNETES
