"""Pods of one template share what they have in common."""

import json
import tracemalloc

from tests.builders import make_pod

from bayplan.simulate.cluster import read_cluster
from bayplan.simulate.cluster_objects import SharedParts


def template_pod(name, node="", **fields):
    return make_pod(
        name, uid=name, node=node, cpu=1, labels={"app": "web"}, tolerations=["dedicated=gpu:NoSchedule"], **fields
    )


def test_equal_parts_of_pods_are_one_object_and_the_pods_say_what_they_said():
    parts = SharedParts()
    first, second = (parts.of(template_pod(name, node=node)) for name, node in (("a", "n1"), ("b", "n2")))
    assert second == template_pod("b", node="n2")
    assert first.spec.containers is second.spec.containers
    assert first.spec.tolerations is second.spec.tolerations
    assert first.metadata.labels is second.metadata.labels
    assert (first.spec.node_name, second.spec.node_name) == ("n1", "n2")


def test_parts_that_differ_stay_different():
    parts = SharedParts()
    pods = [parts.of(make_pod("p", uid="u", cpu=cpu, labels={"app": app})) for cpu in (1, 2) for app in "ab"]
    assert pods == [make_pod("p", uid="u", cpu=cpu, labels={"app": app}) for cpu in (1, 2) for app in "ab"]


def test_a_file_of_many_pods_of_one_template_takes_no_more_room_than_its_text(tmp_path):
    ports = [{"containerPort": port} for port in range(40)]
    spec = {"nodeName": "n1", "containers": [{"name": "c", "ports": ports, "resources": {"requests": {"cpu": 1}}}]}
    items = [{"kind": "Pod", "metadata": {"name": f"p{n}", "resourceVersion": "1"}, "spec": spec} for n in range(500)]
    file = tmp_path / "pods.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    read_cluster([str(file)])
    tracemalloc.start()
    try:
        cluster = read_cluster([str(file)])
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    size = file.stat().st_size
    assert len(cluster.pods) == 500
    assert kept < 1.2 * size, kept / size


def test_what_cannot_be_written_as_bytes_is_left_as_it_is():
    pod = make_pod("p", labels={"app": "\ud800"})
    assert SharedParts().of(pod) is pod
    assert pod.metadata.labels == {"app": "\ud800"}
