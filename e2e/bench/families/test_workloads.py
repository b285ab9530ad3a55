"""What the families put on a cluster."""

import pytest

from e2e.bench.families.scheduler_perf import FAMILIES, Family
from e2e.bench.families.workloads import Size


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_family_keeps_its_proportions_and_its_namespaces_apart(family: Family) -> None:
    size = family.size.scaled(0.01)
    work = family.build(size, "f0-0")
    assert len(work.measured) == size.measured > 0
    assert len(work.init) + len(work.pending) == size.init
    assert len(work.nodes) >= size.nodes
    pods = [*work.init, *work.pending, *work.measured]
    assert len({(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in pods}) == len(pods)
    assert {pod["metadata"]["namespace"] for pod in pods} <= work.namespaces.keys()
    assert {pod["metadata"]["namespace"] for pod in work.measured} == {work.measured_namespace}
    # Two turns share nodes and nothing else.
    other = {pod["metadata"]["namespace"] for pod in family.build(size, "f0-1").measured}
    assert other.isdisjoint(work.namespaces)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_pods_that_run_from_the_start_have_nodes_that_exist(family: Family) -> None:
    work = family.build(family.size.scaled(0.01), "f0-0")
    names = {node["metadata"]["name"] for node in work.nodes}
    assert {pod["spec"]["nodeName"] for pod in work.init} <= names
    assert not any("nodeName" in pod["spec"] for pod in (*work.pending, *work.measured))


def test_scaling_keeps_zero_and_never_reaches_it() -> None:
    assert Size(5000, 0, 10).scaled(0.01) == Size(50, 0, 1)
