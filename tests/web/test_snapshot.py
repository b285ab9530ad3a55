"""What the page is told of a cluster from files."""

import asyncio
import hashlib
import json
import re
from pathlib import Path

import pytest
from tests.web.clusters import mixed_cluster, node, pod, write

from bayplan.config.load import default_configuration
from bayplan.simulate.cluster import read_cluster
from bayplan.web.sources import POINTS, SnapshotSource
from bayplan.web.updates import Updates


def source_of(tmp_path, objects):
    file = write(tmp_path / "cluster.json", objects)
    return SnapshotSource(default_configuration(), read_cluster([str(file)]), name="cluster.json")


async def told(source):
    """Everything a page has been told once all is decided, by topic."""
    updates = Updates(source.inspector, page=source.page)
    await source.run(updates)
    topics = {}
    stream = updates.events()
    async for event in stream:
        name, data = event.decode().removesuffix("\n\n").split("\n")
        topics[name.removeprefix("event: ")] = json.loads(data.removeprefix("data: "))
        if len(topics) == 7:
            break
    await stream.aclose()
    source.inspector.thread.stop()
    return topics


@pytest.fixture
async def mixed(tmp_path):
    return await told(source_of(tmp_path, mixed_cluster(30, waiting=30)))


async def test_the_page_is_told_of_everything_and_that_it_is_decided(mixed):
    assert mixed.keys() == {"page", "state", "summary", "nodes", "queue", "decisions", "history"}
    assert mixed["page"] == {"mode": "snapshot", "title": "cluster.json", "skipped": 0}
    assert mixed["state"] == {"running": False, "error": None}


async def test_pods_that_wait_are_counted_as_the_simulation_leaves_them(mixed):
    waiting = mixed["summary"]["queue"]
    assert waiting["unschedulable"] == mixed["queue"]["total"] > 0
    assert mixed["decisions"]["last"] == 30
    placed = [each for each in mixed["decisions"]["items"] if each["node"] is not None]
    assert len(placed) + mixed["queue"]["total"] == 30


async def test_every_waiting_pod_says_why_in_kube_schedulers_words(mixed):
    messages = {each["message"] for each in mixed["queue"]["items"]}
    assert all(message.startswith("0/30 nodes are available: ") for message in messages)
    assert any("node(s) didn't match Pod's node affinity/selector" in message for message in messages)


async def test_the_packing_is_followed_from_the_first_decision_to_the_last(mixed):
    points = mixed["history"]
    assert [points[0]["at"], points[-1]["at"]] == [0, 30]
    assert [each["at"] for each in points] == sorted({each["at"] for each in points})
    assert all(0 < each["lowerBound"] <= each["nodesUsed"] <= 30 for each in points)
    assert points[-1]["shares"]["cpu"] > points[0]["shares"]["cpu"]


async def test_nodes_whose_pods_the_others_have_room_for_are_told(tmp_path):
    objects = [node("a", 8, "8Gi"), node("b", 8, "8Gi"), node("c", 8, "8Gi"), pod("x", "6", "1Gi", node_name="a")]
    objects += [pod("y", "1", "1Gi", node_name="b")]
    nodes = (await told(source_of(tmp_path, objects)))["nodes"]
    assert dict(zip(nodes["names"], nodes["emptiable"], strict=True)) == {"a": False, "b": True, "c": False}


async def test_a_cluster_without_nodes_or_without_pods_is_told_of(tmp_path):
    empty = await told(source_of(tmp_path, [node("a", 8, "8Gi")]))
    assert (empty["summary"]["pods"], empty["history"][-1]["nodesUsed"]) == (0, 0)
    nowhere = await told(source_of(tmp_path, [pod("x", "1", "1Gi")]))
    assert nowhere["nodes"]["names"] == []
    assert nowhere["queue"]["items"][0]["message"] == "no nodes available to schedule pods"


async def test_questions_are_answered_while_it_decides(tmp_path):
    source = source_of(tmp_path, mixed_cluster(40, waiting=400))
    updates = Updates(source.inspector, page=source.page)
    deciding = asyncio.create_task(source.run(updates))
    answered = json.loads(await source.inspector.nodes())
    assert not deciding.done()
    assert len(answered["names"]) == 40
    await deciding
    source.inspector.thread.stop()


async def test_the_points_of_a_long_run_do_not_grow_with_it(tmp_path):
    objects = [node(f"n{number}", 64, "64Gi") for number in range(10)]
    objects += [pod(f"p{number}", "100m", "1Mi") for number in range(1000)]
    points = (await told(source_of(tmp_path, objects)))["history"]
    assert POINTS <= len(points) <= 2 * POINTS


def test_the_files_of_the_page_ask_nothing_of_other_hosts():
    static = Path(__file__).resolve().parents[2] / "operator" / "bayplan" / "web" / "static"
    own = [path for path in static.rglob("*") if path.is_file() and "vendor" not in path.parts]
    assert len(own) > 8
    foreign = {
        path.name: line
        for path in own
        for line in path.read_text().splitlines()
        if "://" in line and "http://www.w3.org/2000/svg" not in line
    }
    assert foreign == {}


def test_no_file_of_the_page_makes_markup_of_text():
    static = Path(__file__).resolve().parents[2] / "operator" / "bayplan" / "web" / "static"
    forbidden = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", " style=")
    found = {path.name: word for path in static.rglob("*.[hj]*") for word in forbidden if word in path.read_text()}
    assert found == {}


def test_the_vendored_library_is_the_one_that_the_document_names():
    root = Path(__file__).resolve().parents[2]
    folder = root / "operator" / "bayplan" / "web" / "static" / "vendor" / "uplot"
    told = dict(
        re.findall(r"^\| `([\w.]+)` \| `([0-9a-f]{64})` \|$", (root / "docs" / "web.md").read_text(), re.MULTILINE)
    )
    assert told == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
