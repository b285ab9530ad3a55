"""Pods of one template in a file share what they have in common."""

import json
import tracemalloc

from bayplan.simulate.cluster import read_cluster


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
