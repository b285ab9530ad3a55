"""Where pasted pods would go, as the page is told."""

import json

import pytest
from tests.web.clusters import node, pod, write

from bayplan.api.live_paths import RefusedQuestionError
from bayplan.config.load import default_configuration
from bayplan.simulate.cluster import read_cluster
from bayplan.web.sources import SnapshotSource
from bayplan.web.updates import EXPLAINED, told_placement

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 25
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      schedulerName: bayplan
      containers: [{name: web, resources: {requests: {cpu: 100m}}}]
"""


@pytest.fixture
def inspector(tmp_path):
    objects = [node("a", 4, "8Gi"), node("b", 8, "8Gi"), pod("x", "3", "1Gi", node_name="a")]
    file = write(tmp_path / "cluster.json", objects)
    source = SnapshotSource(default_configuration(), read_cluster([str(file)]), name="cluster.json")
    yield source.inspector
    source.inspector.thread.stop()


def text_of(*objects):
    return "\n---\n".join(map(json.dumps, objects)).encode()


async def test_a_pasted_pod_is_told_its_node_with_scores_and_how_many_of_it_fit(inspector):
    told = await told_placement(inspector, text_of(pod("new", "1", "1Gi")), "max")
    (asked,) = told.pods
    assert (asked.namespace, asked.name, asked.node) == ("shop", "new", "a")
    assert asked.explanation.chosen.node == "a"
    assert "2 of 2 nodes fit" in asked.words.outcome
    assert (told.count.fits, told.count.per_node) == (9, {"a": 1, "b": 8})


async def test_a_pod_that_fits_nowhere_is_told_why_with_numbers(inspector):
    (asked,) = (await told_placement(inspector, text_of(pod("new", "9", "1Gi")), "")).pods
    assert asked.node is None
    assert asked.message.startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert any("9000m" in group for group in asked.words.groups)


async def test_a_pod_is_told_whom_it_would_evict_and_why(inspector):
    urgent = pod("new", "4", "1Gi", priority=1000, nodeSelector={"kubernetes.io/hostname": "a"})
    (asked,) = (await told_placement(inspector, text_of(urgent), "")).pods
    assert (asked.node, asked.victims) == ("a", ["shop/x"])
    assert "0 of 2 nodes fit" in asked.words.outcome


async def test_of_many_pods_the_first_are_explained_and_of_all_the_node_is_told(inspector):
    pods = (await told_placement(inspector, DEPLOYMENT.encode(), "")).pods
    assert len(pods) == 25
    assert all(each.node for each in pods)
    assert [each.explanation is not None for each in pods] == [True] * EXPLAINED + [False] * (25 - EXPLAINED)


async def test_what_cannot_be_counted_is_told_beside_where_it_would_go(inspector):
    told = await told_placement(inspector, text_of(pod("p", "1", "1Gi"), pod("q", "1", "1Gi")), "max")
    assert [each.node for each in told.pods] == ["a", "b"]
    assert (told.count, told.count_error) == (None, "count: is of one pod, or of the pods of one workload")


@pytest.mark.parametrize("text", [b"", b"{", b"just words", b"kind: Pod\n\tx: 1", b"\xff\xfe", b"- 1"])
async def test_what_is_no_object_is_refused_in_one_line(inspector, text):
    with pytest.raises(RefusedQuestionError) as refused:
        await told_placement(inspector, text, "")
    assert refused.value.status == 400


async def test_a_pod_of_another_scheduler_is_refused_by_name(inspector):
    other = pod("new", "1", "1Gi", schedulerName="default-scheduler")
    with pytest.raises(RefusedQuestionError, match=r"pod shop/new: spec\.schedulerName: .*bayplan"):
        await told_placement(inspector, text_of(other), "")


async def test_a_pod_has_the_priority_of_a_class_that_is_in_the_files(tmp_path):
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 9}
    file = write(tmp_path / "cluster.json", [node("a", 4, "8Gi"), pod("x", "3", "1Gi", node_name="a"), urgent])
    source = SnapshotSource(default_configuration(), read_cluster([str(file)]), name="cluster.json")
    try:
        asking = pod("new", "4", "1Gi", priorityClassName="urgent")
        (asked,) = (await told_placement(source.inspector, text_of(asking), "")).pods
    finally:
        source.inspector.thread.stop()
    assert asked.victims == ["shop/x"]
