"""What the log of a running scheduler says of a placement, a verdict and a preemption, as text and as JSON."""

import json
import os
import re
import select
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from e2e.conftest import RunBayplan
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient
from e2e.controlplane.objects import node, pod, pod_of_class
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import STOP_SECONDS
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.outcomes import (
    assert_alive_without_a_traceback,
    condition_of,
    end_pod,
    terminating,
    wait_bound,
    wait_refused,
)

from bayplan import __version__

pytestmark = [pytest.mark.controlplane, pytest.mark.usefixtures("priority_classes")]

_BOUND = "Successfully bound pod to node"
_NO_FIT = "Unable to schedule pod; no fit; waiting"
_START = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [IWEC] [a-z._]+ ", re.MULTILINE)


def _live_through_everything(client: ApiClient, namespace: str) -> str:
    """A placement by scores, a verdict, and a preemption; returns the verdict's text."""
    client.create("nodes", node("large", cpu="4"))
    client.create("nodes", node("small", cpu="2"))
    client.create("pods", pod_of_class("placed", namespace, "low", "2"))
    assert wait_bound(client, namespace, ["placed"]) == {"placed": "small"}
    client.create("pods", pod("huge", namespace, requests={"cpu": "64"}))
    wait_refused(client, namespace, "huge")
    client.create("pods", pod_of_class("urgent", namespace, "high", "4"))
    assert wait_bound(client, namespace, ["urgent"]) == {"urgent": "large"}
    client.create("pods", pod_of_class("urgent-2", namespace, "high", "2"))
    wait_until(lambda: "placed" in terminating(client, namespace), "the victim")
    end_pod(client, namespace, "placed")
    assert wait_bound(client, namespace, ["urgent-2"]) == {"urgent-2": "small"}
    return str(condition_of(client.get("pods", "huge", namespace))["message"])


def test_the_log_in_json_tells_a_placement_a_verdict_and_a_preemption(
    control_plane: ControlPlane, client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    process = run_bayplan(arguments=["--logging-format=json", "-v", "10"])

    def lines() -> list[dict[str, Any]]:
        return [json.loads(line) for line in process.log().splitlines()]

    def line(message: str, **fields: object) -> dict[str, Any]:
        def find() -> dict[str, Any] | None:
            found = [one for one in lines() if one["msg"] == message and fields.items() <= one.items()]
            return found[-1] if found else None

        return wait_until(find, message, detail=process.log_tail)

    verdict = _live_through_everything(client, namespace)
    begin = lines()[0]
    assert (begin["msg"], begin["version"], begin["server"]) == ("bayplan starts", __version__, control_plane.url)
    assert begin["profiles"] == "bayplan MostAllocated(cpu 1, memory 1)"
    assert begin["identity"]

    placed = {"name": "placed", "namespace": namespace}
    bound = line(_BOUND, pod=placed)
    assert (bound["v"], bound["node"], bound["runnerUp"], bound["feasibleNodes"]) == (2, "small", "large", 2)
    assert bound["score"] > bound["runnerUpScore"]
    assert bound["milliseconds"] > 0
    scored = [one for one in lines() if one["msg"] == "Plugin scored node for pod" and one["pod"] == placed]
    assert {(one["plugin"], one["node"]) for one in scored} >= {
        ("NodeResourcesFit", "small"),
        ("NodeResourcesFit", "large"),
    }
    assert sum(one["score"] for one in scored if one["node"] == "small") == bound["score"]

    huge = {"name": "huge", "namespace": namespace}
    assert verdict in {one["err"] for one in lines() if one["msg"] == _NO_FIT and one["pod"] == huge}
    texts = [one["err"] for one in lines() if one["msg"] == _NO_FIT and one["pod"] == huge]
    assert all(before != after for before, after in pairwise(texts)), "once a change"

    urgent = {"name": "urgent-2", "namespace": namespace}
    target = line("the target node for the preemption is determined", pod=urgent)
    assert (target["node"], target["victims"]) == ("small", f"{namespace}/placed")
    assert line("preempted", victim=placed)["pod"] == urgent
    moves = [one["queue"] for one in lines() if "internal scheduling queue" in one["msg"] and one["pod"] == urgent]
    assert moves[0] == "active"
    assert_alive_without_a_traceback(process)


def test_the_log_as_text_tells_the_same_at_v_2(client: ApiClient, namespace: str, run_bayplan: RunBayplan) -> None:
    process = run_bayplan(arguments=["-v", "2"])
    verdict = _live_through_everything(client, namespace)

    def told(text: str) -> str:
        def find() -> str | None:
            return next((line for line in process.log().splitlines() if text in line), None)

        return wait_until(find, text, detail=process.log_tail)

    assert re.search(
        r"node='small' score=\d+ runnerUp='large' runnerUpScore=\d+ feasibleNodes=2 milliseconds=[\d.]+$",
        told(f"{_BOUND} pod='{namespace}/placed' "),
    )
    assert told(f"{_NO_FIT} pod='{namespace}/huge' error={verdict}")
    assert told(f"preempted victim='{namespace}/placed' pod='{namespace}/urgent-2' node='small'")
    log = process.log()
    assert "Plugin scored node" not in log
    assert "internal scheduling queue" not in log
    assert all(_START.match(line) for line in log.splitlines())
    assert_alive_without_a_traceback(process)


# An API server that begins to answer refuses all until it has read its roles, which takes longer beside others.
@pytest.mark.alone
def test_an_outage_is_two_lines(
    control_plane: ControlPlane, client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    client.create("nodes", node("n1"))
    process = run_bayplan()
    before = len(process.log().splitlines())
    control_plane.stop_apiserver()
    try:
        wait_until(lambda: "cannot reach the API server" in process.log(), "the outage", detail=process.log_tail)
    finally:
        control_plane.start_apiserver()
    client.create("pods", pod("after", namespace))
    wait_bound(client, namespace, ["after"])
    wait_until(lambda: "is reached again" in process.log(), "its end", detail=process.log_tail)
    about = [line.split(" ", 4)[4] for line in process.log().splitlines()[before:]]
    assert [line.split(" server=")[0] for line in about if "reach" in line] == [
        "cannot reach the API server",
        "the API server is reached again",
    ]
    assert [line for line in about if "interrupted" in line or "not listed" in line or "will retry" in line] == []


def test_a_reader_that_stands_still_holds_up_neither_the_binds_nor_the_end(
    client: ApiClient, namespace: str, bayplan_identity: Path, tmp_path: Path
) -> None:
    client.create_all("nodes", [node(f"n{number}", cpu="64") for number in range(5)])
    log = tmp_path / "stalled.log"
    os.mkfifo(log)
    reader = os.open(log, os.O_RDWR | os.O_NONBLOCK)
    try:
        process = BayplanProcess(tmp_path, kubeconfig=bayplan_identity, name="stalled", arguments=["-v", "10"])
        with process:
            names = [f"p{number}" for number in range(200)]
            client.create_all("pods", [pod(name, namespace, requests={"cpu": "1"}) for name in names])
            wait_bound(client, namespace, names)
            process.terminate()
            assert process.wait(STOP_SECONDS) == 0
        # The two hundred pods alone are more than a pipe holds.
        with pytest.raises(BlockingIOError):
            os.write(reader, bytes(select.PIPE_BUF))
        assert b" bayplan starts version=" in os.read(reader, 2**20)
    finally:
        os.close(reader)
