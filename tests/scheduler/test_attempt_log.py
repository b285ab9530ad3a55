"""What a log says of attempts at `-v 2` and above."""

import logging
import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import make_node, make_pod_info

from bayplan.cache.node_table import NodeTable
from bayplan.config.load import default_configuration
from bayplan.logs.formats import V2, V10
from bayplan.plugins.registry import build_frameworks
from bayplan.scheduler.attempt_log import REMEMBERED_VERDICTS, VerdictLog, runner_up
from bayplan.scheduler.cycle import SchedulingCycle

LOGGER = "bayplan.scheduler.attempt_log"


@pytest.fixture
def at(caplog):
    """Sets the level at which the scheduler logs."""
    return lambda level: caplog.set_level(level, logger="bayplan.scheduler")


def said(caplog):
    return [record.getMessage() for record in caplog.records if record.name == LOGGER]


async def test_a_placement_is_one_line_with_its_score_the_runner_up_and_the_time(scene, at, caplog):
    at(V2)
    scene.node("n1", cpu="8")
    scene.node("n2", cpu="4")
    scene.node("n3", cpu="2")
    scene.pod(cpu="1")
    scene.step()
    scene.now += 0.0125
    await scene.dispatcher.run()
    (line,) = said(caplog)
    found = re.fullmatch(
        r"Successfully bound pod to node pod='default/p' node='n3' score=(\d+) runnerUp='n2' runnerUpScore=(\d+)"
        r" feasibleNodes=3 milliseconds=12\.5",
        line,
    )
    assert found
    assert int(found[1]) > int(found[2]) > 0


async def test_a_placement_that_needed_no_scores_says_why(scene, at, caplog):
    at(V2)
    await scene.first_attempt()
    (line,) = said(caplog)
    assert line == (
        "Successfully bound pod to node pod='default/p' node='n1' why='the only node that fits'"
        " feasibleNodes=1 milliseconds=0.0"
    )


async def test_a_placement_is_told_when_the_pod_is_bound_and_not_before(scene, at, caplog):
    at(V2)
    scene.node()
    scene.pod()
    scene.step()
    assert said(caplog) == []


async def test_a_verdict_is_told_when_it_changes_and_not_at_each_try(scene, at, caplog):
    at(V2)
    scene.node(cpu="500m")
    scene.pod()
    for _ in range(3):
        await scene.attempt()
        scene.after(400.0)
    first = (
        "Unable to schedule pod; no fit; waiting pod='default/p' error=0/1 nodes are available: 1 Insufficient cpu. "
    )
    assert len(said(caplog)) == 1
    assert said(caplog)[0].startswith(first)
    assert said(caplog)[0].endswith(scene.said()[0][2]), "the text of the Event"
    scene.node("n2", cpu="500m")
    await scene.attempt()
    assert len(said(caplog)) == 2
    assert "0/2 nodes are available: 2 Insufficient cpu. " in said(caplog)[1]


async def test_an_error_is_told_as_one(scene, at, caplog):
    at(V2)
    scene.binder.result = RuntimeError("spoilt")
    await scene.first_attempt()
    assert said(caplog) == [
        "Error scheduling pod; retrying pod='default/p' error=running Bind plugin \"DefaultBinder\": spoilt"
    ]


async def test_below_v_2_nothing_of_it_is_told_or_worked_out(scene, at, caplog):
    at(logging.INFO)
    scene.node("n1")
    scene.node("n2")
    scene.pod()
    assert scene.scheduler.schedule_one().placement.runner_up is None
    await scene.dispatcher.run()
    scene.pod("huge", cpu="99")
    await scene.attempt()
    assert said(caplog) == []


async def test_at_v_10_each_plugins_score_of_each_node_is_told_as_by_kube_scheduler(scene, at, caplog):
    at(V10)
    scene.node("n1", cpu="8")
    scene.node("n2", cpu="4")
    scene.node("full", cpu="1m")
    scene.pod(cpu="1")
    attempt = scene.scheduler.schedule_one()
    scored = [
        re.fullmatch(r"Plugin scored node for pod pod='default/p' plugin=(\w+) node='(n\d)' score=(\d+)", line)
        for line in said(caplog)
    ]
    by_plugin = {(found[1], found[2]): int(found[3]) for found in scored if found}
    assert {plugin for plugin, _ in by_plugin} >= {"NodeResourcesFit", "NodeResourcesBalancedAllocation"}
    totals = {node: sum(score for (_, other), score in by_plugin.items() if other == node) for node in ("n1", "n2")}
    for node, total in totals.items():
        assert f"Calculated node's final score for pod pod='default/p' node='{node}' score={total}" in said(caplog)
    assert attempt.placement.score == totals["n2"]


def test_what_is_remembered_of_verdicts_has_a_bound_in_bytes(at, allocated, monkeypatch):
    at(V2)
    monkeypatch.setattr(logging.getLogger(LOGGER), "propagate", False)
    verdicts = VerdictLog()
    before = allocated()
    for number in range(REMEMBERED_VERDICTS + 10_000):
        queued, pod = SimpleNamespace(uid=f"{number:036}"), SimpleNamespace(key=f"default/p-{number}")
        verdicts.tell(SimpleNamespace(queued=queued, pod=pod, error=False), f"0/5000 nodes are available: {number}")
    assert allocated() - before < 300 * REMEMBERED_VERDICTS


@given(st.lists(st.sampled_from([2, 3, 4, 8, 16]), min_size=2, max_size=8))
def test_the_runner_up_is_chosen_where_the_winner_is_not_there(sizes):
    def decide(left_out=None):
        nodes = NodeTable()
        (framework,) = build_frameworks(default_configuration(), nodes).values()
        for number, cpu in enumerate(sizes):
            if f"n{number}" != left_out:
                nodes.set_node(make_node(f"n{number}", cpu=str(cpu)))
        return SchedulingCycle(nodes).schedule(make_pod_info(cpu="1"), framework)

    decision = decide()
    placement, second = decision.outcome, runner_up(decision)
    assert second.node_name == decide(left_out=placement.node_name).outcome.node_name
    assert second.score <= placement.score
