"""`bayplan web`: what it refuses, and that it serves until it is told to end."""

import asyncio
import socket

import aiohttp
import pytest
from tests.web.chromium import end, start_command
from tests.web.clusters import node, pod, write

from bayplan.cli import main


def ended(capsys, *arguments):
    """The exit code of the command and the lines it wrote on standard error."""
    with pytest.raises(SystemExit) as end_of:
        main(["web", "--no-browser", *arguments])
    return end_of.value.code, capsys.readouterr().err.splitlines()


@pytest.fixture
def cluster(tmp_path):
    return write(tmp_path / "cluster.json", [node("a", 4, "8Gi"), pod("x", "1", "1Gi"), pod("y", "9", "1Gi")])


def test_a_file_that_is_not_there_is_named(capsys):
    assert ended(capsys, "--cluster", "/nowhere.yaml") == (
        2,
        ["/nowhere.yaml: cannot be read: No such file or directory"],
    )


def test_files_without_objects_are_refused(capsys, tmp_path):
    (tmp_path / "empty.json").write_text('{"apiVersion": "v1", "kind": "List", "items": []}')
    code, lines = ended(capsys, "--cluster", str(tmp_path / "empty.json"))
    assert (code, len(lines)) == (2, 1)


def test_a_port_that_is_taken_is_named(capsys, cluster):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, lines = ended(capsys, "--cluster", str(cluster), "--port", str(port))
    assert (code, lines[-1]) == (2, f"--port: 127.0.0.1:{port}: Address already in use")


@pytest.mark.parametrize("flags", [("--config", "x.yaml"), ("--scheduler-name", "x")])
def test_what_is_about_files_needs_files(capsys, flags):
    code, lines = ended(capsys, *flags)
    assert code == 2
    assert any("about --cluster" in line for line in lines)


def test_a_wrong_configuration_is_told_before_anything_is_served(capsys, cluster, tmp_path):
    (tmp_path / "wrong.yaml").write_text("kind: Nothing\n")
    code, lines = ended(capsys, "--cluster", str(cluster), "--config", str(tmp_path / "wrong.yaml"))
    assert code == 2
    assert lines


def test_a_cluster_whose_scheduler_cannot_be_reached_is_one_line(capsys, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    code, lines = ended(capsys, "--server", f"http://127.0.0.1:{port}")
    assert (code, len(lines)) == (1, 1)
    assert "does not answer" in lines[0]


async def test_it_serves_the_page_and_ends_when_told_to_with_pages_open(cluster):
    address, process = start_command(cluster)
    server, _, token = address.partition("/?token=")
    async with aiohttp.ClientSession(server) as session:
        async with session.get("/") as page:
            assert page.status == 200
            assert "<title>bayplan</title>" in await page.text()
        async with session.post("/open", data=token, headers={"Origin": server}) as opened:
            shown = {"Authorization": f"Bearer {await opened.text()}"}
        async with session.get("/events", headers=shown) as events:
            assert events.content_type == "text/event-stream"
            assert (await events.content.readline()).startswith(b"event: ")
            assert await asyncio.to_thread(end, process) == 0
