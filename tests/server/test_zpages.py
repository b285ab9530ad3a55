import json
import re
from datetime import datetime
from pathlib import Path

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from e2e.controlplane.kubernetes_version import kubernetes_version

from bayplan import __version__
from bayplan.config.feature_gates import KUBERNETES
from bayplan.server.slis import process_start_seconds
from bayplan.server.zpages import configz_route, flagz_route, statusz_route

ROOT = Path(__file__).parents[2]


@pytest.fixture
async def get():
    clients = []

    async def get(route, accept=None, query="", agent="test"):
        app = web.Application()
        app.router.add_routes([route])
        clients.append(TestClient(TestServer(app)))
        await clients[-1].start_server()
        headers = {"User-Agent": agent} | ({} if accept is None else {"Accept": accept})
        skipped = ["Accept"] if accept is None else []
        return await clients[-1].get(route.path + query, headers=headers, skip_auto_headers=skipped)

    yield get
    for client in clients:
        await client.close()


def asked(kind, version="v1beta1", media_type="application/json"):
    return f"{media_type};v={version};g=config.k8s.io;as={kind}"


def a_statusz():
    return statusz_route(["/b/c", "/b/d", "/a"], "1.37", started_at=0.9, now=lambda: 3661.9)


async def test_configz_is_the_configuration_of_this_moment(get):
    answer = await get(configz_route(lambda: {"parallelism": 16}))
    assert await answer.json() == {"componentconfig": {"parallelism": 16}}
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("accept", [None, "", " ", "*/*", "text/plain"])
async def test_flagz_lists_flags_in_order_a_line_each(get, accept):
    answer = await get(flagz_route({"v": "2", "master": "a\nb"}), accept)
    text = await answer.text()
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert text.startswith("\nbayplan flagz\nWarning: ")
    assert text.endswith("\nmaster='a\\nb'\nv=2\n")


async def test_flagz_is_an_object_for_who_asks_for_one(get):
    document = await (await get(flagz_route({"v": "2", "a": "b"}), asked("Flagz"))).json()
    assert document == {
        "kind": "Flagz",
        "apiVersion": "config.k8s.io/v1beta1",
        "metadata": {"name": "bayplan"},
        "flags": {"a": "b", "v": "2"},
    }
    assert "flags" not in await (await get(flagz_route({}), asked("Flagz"))).json()


async def test_statusz_says_since_when_what_runs_and_where_to_look(get):
    text = await (await get(a_statusz())).text()
    found = dict(re.findall(r"^([A-Z][A-Za-z ]+): (.*)$", text, re.MULTILINE))
    assert text.startswith("\nbayplan statusz\n")
    assert (found["Started"], found["Up"]) == ("Thu Jan  1 00:00:00 UTC 1970", "1 hr 01 min 01 sec")
    assert (found["Binary version"], found["Emulation version"], found["Paths"]) == (__version__, "1.37", "/a /b")


@pytest.mark.parametrize(
    ("media_type", "read"), [("application/json", json.loads), ("application/yaml", yaml.safe_load)]
)
async def test_statusz_is_an_object_for_who_asks_for_one(get, media_type, read):
    answer = await get(a_statusz(), asked("Statusz", media_type=media_type))
    assert answer.headers["Content-Type"] == f"{media_type};g=config.k8s.io;v=v1beta1;as=Statusz"
    assert "Warning" not in answer.headers
    assert read(await answer.text()) == {
        "kind": "Statusz",
        "apiVersion": "config.k8s.io/v1beta1",
        "metadata": {"name": "bayplan"},
        "startTime": "1970-01-01T00:00:00Z",
        "uptimeSeconds": 3661,
        "goVersion": "",
        "binaryVersion": __version__,
        "emulationVersion": "1.37",
        "paths": ["/a", "/b"],
    }


async def test_statusz_began_when_the_process_began(get):
    document = await (await get(statusz_route([], "1.37"), asked("Statusz"))).json()
    started = datetime.strptime(document["startTime"], "%Y-%m-%dT%H:%M:%S%z").timestamp()
    assert started == int(process_start_seconds())


async def test_the_older_version_comes_with_a_warning(get):
    answer = await get(a_statusz(), asked("Statusz", "v1alpha1"))
    assert (await answer.json())["apiVersion"] == "config.k8s.io/v1alpha1"
    assert answer.headers["Warning"].startswith('299 - "This version of the statusz endpoint is deprecated.')


@pytest.mark.parametrize(
    ("query", "agent", "indented"),
    [
        ("", "test", False),
        ("", "curl/8", True),
        ("?pretty=true", "test", True),
        ("?pretty=0", "curl/8", False),
        ("?pretty=", "Wget/1", True),
    ],
)
async def test_people_get_json_in_lines(get, query, agent, indented):
    text = await (await get(a_statusz(), asked("Statusz"), query, agent)).text()
    assert ("\n  " in text) is indented


@pytest.mark.parametrize("accept", ["application/json", "text/html", asked("Statusz", "v1"), asked("Flagz"), "garbage"])
async def test_what_there_is_not_is_refused_with_what_there_is(get, accept):
    answer = await get(a_statusz(), accept)
    assert (answer.status, answer.headers["Content-Type"]) == (406, "application/json")
    status = await answer.json()
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 406, "NotAcceptable")
    assert status["message"].endswith(": application/json, application/yaml, text/plain")


async def test_who_reads_yaml_is_refused_in_yaml(get):
    answer = await get(a_statusz(), "application/yaml")
    assert (answer.status, answer.headers["Content-Type"]) == (406, "application/yaml")
    assert yaml.safe_load(await answer.text())["reason"] == "NotAcceptable"


def test_the_version_that_it_behaves_as_is_the_one_it_is_tested_with():
    assert kubernetes_version(ROOT / "e2e/controlplane/go.mod").rpartition(".")[0] == KUBERNETES
