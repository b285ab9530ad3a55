"""Pods of low and high priority, for the clusters that the documented behaviours are shown on."""

import json

from tests.builders import make_pod
from tests.simulate.test_simulator import simulator

from bayplan.api.objects import Pod
from bayplan.simulate.cluster import read_cluster
from bayplan.simulate.simulator import Simulator

LOW, MIDDLE, HIGH = 1, 500, 1000
HIGHEST_OF_USERS, CLUSTER_CRITICAL, NODE_CRITICAL = 1_000_000_000, 2_000_000_000, 2_000_001_000
NEVER = {"preemption_policy": "Never"}


def running(name: str, node: str = "n1", **fields) -> Pod:
    """A pod of low priority that takes two CPUs of a node; its uid is its name."""
    return make_pod(name, uid=name, node=node, **{"cpu": "2", "priority": LOW, **fields})


def pending(name: str = "p", **fields) -> Pod:
    """A pod of high priority that waits for three CPUs; its uid is its name."""
    return make_pod(name, uid=name, **{"cpu": "3", "priority": HIGH, **fields})


def read_from_file(directory, *documents: dict) -> Simulator:
    """A simulator of the objects of a file, as a user would write them."""
    file = directory / "cluster.yaml"
    file.write_text("\n---\n".join(json.dumps(document) for document in documents))
    scene = simulator()
    scene.add(read_cluster([str(file)]))
    return scene


def priority_class(name: str, **fields) -> dict:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, **fields}


def node_document(cpu: int = 1) -> dict:
    allocatable = {"cpu": cpu, "memory": "1Gi", "pods": 9}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": allocatable}}


def pod_document(name: str, namespace: str = "default", **spec) -> dict:
    """A pod for bayplan that asks for one CPU."""
    container = {"name": "c", "resources": {"requests": {"cpu": 1}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedulerName": "bayplan", "containers": [container], **spec},
    }
