"""`bayplan queue` at a terminal: what waits for a running scheduler, and where."""

import asyncio
import json

import pytest
from tests.cli.forged_queue import queue_full_of
from tests.client.conftest import cluster, kubeconfig, scheduler  # noqa: F401  fixtures

from bayplan.cli import main
from bayplan.client.scheduler_client import SchedulerClient


@pytest.fixture
def queue(kubeconfig, capsys):  # noqa: F811  the fixture
    async def run(*arguments):
        def call():
            with pytest.raises(SystemExit):
                main(["queue", *arguments, "--kubeconfig", str(kubeconfig)])

        await asyncio.to_thread(call)
        return capsys.readouterr().out

    return run


async def test_a_pod_that_waits_is_a_line_with_its_queue_and_attempts(queue):
    heading, line = (await queue()).splitlines()
    assert heading.split() == ["NAMESPACE", "NAME", "QUEUE", "PRIORITY", "ATTEMPTS", "AGE", "NEXT", "TRY"]
    assert line.split()[:5] == ["default", "big", "unschedulable", "0", "1"]
    assert "in " in line
    assert len((await queue("-n", "shop")).splitlines()) == 1


async def test_wide_adds_the_message_and_json_has_everything(queue):
    assert "Insufficient cpu" in await queue("-o", "wide")
    (item,) = json.loads(await queue("-o", "json"))["items"]
    assert (item["name"], item["rejectedBy"]) == ("big", ["NodeResourcesFit"])


async def test_no_text_in_the_queue_reaches_the_terminal_as_a_code(queue, monkeypatch):
    monkeypatch.setattr(SchedulerClient, "queue_page", queue_full_of("\x1b[2J\u202e\r"))
    heading, line, end = (await queue("-o", "wide")).split("\n")
    assert (heading.split()[0], end) == ("NAMESPACE", "")
    assert line.isprintable()
    assert line.count("\\x1b[2J\\u202e\\r") == 7
