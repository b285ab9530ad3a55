import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from e2e.controlplane.kubernetes_version import kubernetes_version

from bayplan import __version__
from bayplan.config.feature_gates import KUBERNETES
from bayplan.server.debug import configz_route, flagz_route, statusz_route
from bayplan.server.metrics import process_start_seconds

ROOT = Path(__file__).parents[2]


@pytest.fixture
async def get():
    clients = []

    async def get(route, accept="*/*"):
        app = web.Application()
        app.router.add_routes([route])
        clients.append(TestClient(TestServer(app)))
        await clients[-1].start_server()
        return await clients[-1].get(route.path, headers={"Accept": accept})

    yield get
    for client in clients:
        await client.close()


async def lines_of(answer):
    return dict(re.findall(r"^([A-Z][A-Za-z ]+): (.*)$", await answer.text(), re.MULTILINE))


def a_statusz():
    return statusz_route(["/b/c", "/b/d", "/a"], "1.37", started_at=0.9, now=lambda: 3661.9)


async def test_configz_is_the_configuration_of_this_moment(get):
    answer = await get(configz_route(lambda: {"parallelism": 16}))
    assert await answer.json() == {"componentconfig": {"parallelism": 16}}
    assert answer.headers["Cache-Control"] == "no-store"


async def test_flagz_lists_flags_in_order_a_line_each(get):
    text = await (await get(flagz_route({"v": "2", "master": "a\nb"}))).text()
    assert text.startswith("\nbayplan flagz\nWarning: ")
    assert text.endswith("\nmaster='a\\nb'\nv=2\n")


async def test_statusz_says_since_when_what_runs_and_where_to_look(get):
    answer = await get(a_statusz())
    found = await lines_of(answer)
    assert (await answer.text()).startswith("\nbayplan statusz\n")
    assert (found["Started"], found["Up"]) == ("Thu Jan  1 00:00:00 UTC 1970", "1 hr 01 min 01 sec")
    assert (found["Binary version"], found["Emulation version"], found["Paths"]) == (__version__, "1.37", "/a /b")


async def test_statusz_began_when_the_process_began(get):
    found = await lines_of(await get(statusz_route([], "1.37")))
    started = datetime.strptime(found["Started"], "%a %b %d %H:%M:%S %Z %Y").replace(tzinfo=UTC)
    assert started.timestamp() == int(process_start_seconds())


@pytest.mark.parametrize("route", [flagz_route({"v": "2"}), a_statusz()], ids=["flagz", "statusz"])
@pytest.mark.parametrize("accept", ["", "*/*", "text/plain", "application/json", "garbage"])
async def test_pages_for_people_are_text_whatever_is_asked_for(get, route, accept):
    answer = await get(route, accept)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/plain; charset=utf-8")


def test_the_version_that_it_behaves_as_is_the_one_it_is_tested_with():
    assert kubernetes_version(ROOT / "e2e/controlplane/go.mod").rpartition(".")[0] == KUBERNETES
