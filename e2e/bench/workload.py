"""What every contestant is given: the same nodes, the same pods, the same settings."""

from typing import Any

from e2e.controlplane.client import Object
from e2e.controlplane.objects import node, pod

SCHEDULER_NAME = "bench"
NODE_CPU_MILLIS, NODE_MEMORY_MIB, NODE_PODS = 32_000, 256 * 1024, 110
POD_CPU_MILLIS, POD_MEMORY_MIB = 100, 500
QPS, BURST = 5_000, 10_000

PODS_PER_NODE = min(NODE_PODS, NODE_CPU_MILLIS // POD_CPU_MILLIS, NODE_MEMORY_MIB // POD_MEMORY_MIB)


def node_name(index: int) -> str:
    """Returns the name of a node, counted from 0."""
    return f"node-{index:05d}"


def pod_name(index: int) -> str:
    """Returns the name of a pod, counted from 0."""
    return f"pod-{index:05d}"


def bench_node(index: int) -> Object:
    """Returns a Ready node of 32 CPUs, 256 GiB and 110 pods."""
    return node(node_name(index), cpu=f"{NODE_CPU_MILLIS}m", memory=f"{NODE_MEMORY_MIB}Mi", pods=str(NODE_PODS))


def bench_pod(index: int, namespace: str, on_nodes: int = 0) -> Object:
    """Returns a pod of 100m and 500 MiB for whichever scheduler runs, or one that is on one of so many nodes."""
    requests = {"cpu": f"{POD_CPU_MILLIS}m", "memory": f"{POD_MEMORY_MIB}Mi"}
    placed = node_name(index % on_nodes) if on_nodes else None
    return pod(pod_name(index), namespace, scheduler=SCHEDULER_NAME, requests=requests, node_name=placed)


def packed_node(index: int) -> str:
    """Returns where a pod goes when nodes are filled one after the other: the answer a perfect packer gives."""
    return node_name(index // PODS_PER_NODE)


def fewest_nodes(pods: int) -> int:
    """Returns how many nodes that takes."""
    return -(-pods // PODS_PER_NODE)


def scheduler_configuration(percentage_of_nodes_to_score: int | None) -> dict[str, Any]:
    """Returns the KubeSchedulerConfiguration of every scheduler: its default plugins, packing by cpu and memory."""
    packing = {
        "type": "MostAllocated",
        "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
    }
    profile: dict[str, Any] = {
        "schedulerName": SCHEDULER_NAME,
        "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": packing}}],
    }
    if percentage_of_nodes_to_score is not None:
        profile["percentageOfNodesToScore"] = percentage_of_nodes_to_score
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": QPS, "burst": BURST},
        "profiles": [profile],
    }
