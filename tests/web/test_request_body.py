import json

import pytest
from tests.live.live_scene import LiveScene, pod_body

from bayplan.simulate.documents import ClusterFileError
from bayplan.web.updates import as_json

YAML = b"""
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  schedulerName: bayplan
  containers:
  - name: c
    resources: {requests: {cpu: 1}}
---
apiVersion: v1
kind: List
items: []
"""


async def test_yaml_becomes_a_body_that_the_scheduler_takes():
    scene = LiveScene()
    scene.node("n1", cpu="4")
    answer = json.loads(await scene.inspector.simulation(as_json(YAML, "pods.yaml"), ""))
    assert [pod["attempts"][0]["node"] for pod in answer["pods"]] == ["n1"]


def test_json_stays_what_it_is():
    assert json.loads(as_json(json.dumps(pod_body()).encode(), "x"))["items"] == [pod_body()]


@pytest.mark.parametrize("data", [b"", b"{", b"a: [", b"7"])
def test_what_is_neither_is_refused_by_its_name(data):
    with pytest.raises(ClusterFileError, match=r"^pods\.yaml: "):
        as_json(data, "pods.yaml")
