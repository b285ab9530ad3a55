"""The fleet that is laid out: how many of what, and that placeholders leave no room for a job."""

from collections import Counter

import pytest

from e2e.bench.fleet.__main__ import table
from e2e.bench.fleet.layout import Layout
from e2e.bench.fleet.turn import BURST, Flow, Phase, Resident, Turn
from e2e.controlplane.client import Object

NODES, PODS = 120, 300


@pytest.fixture(scope="module")
def layout() -> Layout:
    return Layout(nodes=NODES, pods=PODS, jobs=60)


def amounts(pod: Object) -> Counter[str]:
    """What a pod asks for, in thousandths of a CPU and whole numbers of the others."""
    requests = pod["spec"]["containers"][0]["resources"]["requests"]
    return Counter({name: int(amount.removesuffix("m")) for name, amount in requests.items()}) + Counter(pods=1)


def room(layout: Layout) -> dict[str, Counter[str]]:
    """What nodes have left beside the pods that run and the placeholders."""
    left = {
        node["metadata"]["name"]: Counter(
            {name: int(amount.removesuffix("m")) for name, amount in node["status"]["allocatable"].items()}
        )
        for node in layout.node_objects()
    }
    for placed in (layout.running, layout.placeholders):
        for pod in layout.pod_objects(placed, "namespace"):
            left[pod["spec"]["nodeName"]].subtract(amounts(pod))
    return left


def test_there_are_as_many_nodes_and_pods_as_asked_for(layout: Layout) -> None:
    assert len([*layout.node_objects()]) == NODES
    assert len([*layout.pod_objects(layout.running, "running")]) == PODS


def test_no_node_holds_more_than_it_has(layout: Layout) -> None:
    assert min(amount for left in room(layout).values() for amount in left.values()) >= 0


def test_with_placeholders_no_job_fits_anywhere_until_one_is_gone(layout: Layout) -> None:
    left = room(layout)
    fleets = {node["metadata"]["name"]: node["metadata"]["labels"]["fleet"] for node in layout.node_objects()}
    for job in layout.jobs("jobs", 0, 200):
        asked = amounts(job)
        fits = [
            name
            for name, fleet in fleets.items()
            if fleet == job["spec"]["nodeSelector"]["fleet"] and all(left[name][key] >= asked[key] for key in asked)
        ]
        assert fits == []


def test_the_same_jobs_come_to_everybody(layout: Layout) -> None:
    assert [*layout.jobs("jobs", 10, 20)] == [*layout.jobs("jobs", 10, 20)]
    assert next(layout.jobs("jobs", 10, 1))["metadata"]["name"] == "job-10"


def test_the_table_has_a_line_for_each_turn() -> None:
    flows = [Flow(Phase(50, 2.5), 0.01, 0.02, 20.0, 6.5), Flow(Phase(2000, BURST), 4.0, 9.0, 10.3, 3.25)]
    turn = Turn("bayplan", True, flows, Resident(140_000_000, 181_000_000), Resident(130_000_000, 150_000_000), 2050)
    lines = table([turn]).splitlines()
    assert [cell.strip() for cell in lines[0].strip("|").split("|")][2:5] == [
        *("2.5/s: p50, p99 ms", "CPU ms a job", "2,000 at once: p50, p99 ms")
    ]
    assert [cell.strip() for cell in lines[2].strip("|").split("|")] == [
        *("with", "bayplan", "10, 20", "6.5", "4000, 9000", "3.2", "10.3", "140, 181", "130, 150", "2050")
    ]
