"""A report with what each node said of each pod is written piece by piece, and held as little text."""

import json

import pytest
from tests.builders import make_node, make_pod
from tests.simulate.explained import run_explained

from bayplan.cache.pod_info import PodInfo
from bayplan.cli.simulation import ExplainedAttempts
from bayplan.config.load import default_configuration
from bayplan.explain.trace import ExplanationTooLargeError
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.report import encode
from bayplan.simulate.simulator import Simulator
from bayplan.simulate.step import tracing


def crowd(nodes=3):
    """Pods that are placed, preempt others, are evicted and fit nowhere, and one that is gated."""
    pods = [
        make_pod("low", uid="low", cpu=3, priority=0),
        make_pod("high", uid="high", cpu=4, priority=9, created="2026-01-02T00:00:00Z"),
        make_pod("huge", uid="huge", cpu=99),
        make_pod("gated", uid="gated", gates=["wait"]),
    ]
    simulator = Simulator(default_configuration(), clock=lambda: 0.0)
    simulator.add(
        ClusterObjects(nodes=[make_node(f"n{n}", cpu=4) for n in range(nodes)], pods=list(map(PodInfo, pods)))
    )
    return simulator


def test_the_pieces_are_the_report_as_it_is_written_in_one():
    whole = encode(run_explained(crowd()))
    simulator, explained = crowd(), ExplainedAttempts()
    simulator.reader = tracing(simulator.cache.nodes)
    while explained.step(simulator) is not None:
        pass
    assert b"".join(explained.pieces(simulator.report())) == whole
    assert len(json.loads(whole)["pods"]) == 4


@pytest.mark.parametrize("nodes", [0, 1])
def test_without_explanations_and_without_pods_the_pieces_are_the_same_report(nodes):
    report = crowd(nodes).run()
    assert b"".join(ExplainedAttempts().pieces(report)) == encode(report)
    empty = Simulator(default_configuration()).report()
    assert b"".join(ExplainedAttempts().pieces(empty)) == encode(empty)


def test_what_is_held_has_a_bound_in_bytes(monkeypatch):
    monkeypatch.setattr("bayplan.cli.simulation.MAX_EXPLAINED_BYTES", 700)
    simulator, explained = crowd(), ExplainedAttempts()
    simulator.reader = tracing(simulator.cache.nodes)
    explained.step(simulator)
    with pytest.raises(ExplanationTooLargeError, match="the explanations up to pod default/"):
        explained.step(simulator)
