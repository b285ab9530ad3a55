"""Clusters as files, for the page: nodes of several kinds, some full and some nearly empty, and pods that wait."""

import json
import random
from pathlib import Path
from typing import Any

SCHEDULER = "bayplan"
POOLS = (("general", 32, "128Gi", 0), ("gpu", 96, "384Gi", 8), ("memory", 16, "256Gi", 0))


def node(name: str, cpu: int, memory: str, gpus: int = 0, **spec: Any) -> dict[str, Any]:
    amounts: dict[str, Any] = {"cpu": cpu, "memory": memory, "pods": 110}
    if gpus:
        amounts["nvidia.com/gpu"] = gpus
    labels = {"kubernetes.io/hostname": name, "pool": name.rpartition("-")[0]}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
        "spec": spec,
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def pod(
    name: str, cpu: str, memory: str, *, node_name: str = "", namespace: str = "shop", **spec: Any
) -> dict[str, Any]:
    gpus = spec.pop("gpus", 0)
    requests: dict[str, Any] = {"cpu": cpu, "memory": memory}
    limits = {"nvidia.com/gpu": gpus} if gpus else {}
    requests |= limits
    if node_name:
        spec["nodeName"] = node_name
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}", "labels": {"app": name}},
        "spec": {
            "schedulerName": SCHEDULER,
            "containers": [{"name": "main", "resources": {"requests": requests, "limits": limits}}],
        }
        | spec,
        "status": {"phase": "Running" if node_name else "Pending"},
    }


def mixed_cluster(nodes: int, *, seed: int = 5, waiting: int = 40) -> list[dict[str, Any]]:
    """Nodes of three pools, most of them well filled, some half full, some hardly used, a few empty or cordoned.

    Of the pods that wait most fit; the others ask for too much cpu, for GPUs that are taken, or for a label that no
    node has.
    """
    rng = random.Random(seed)
    objects: list[dict[str, Any]] = []
    for number in range(nodes):
        pool, cpu, memory, gpus = POOLS[(0, 0, 0, 1, 2)[number % 5]]
        name = f"{pool}-{number:04}"
        tainted = {"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]} if gpus else {}
        objects.append(
            node(name, cpu, memory, gpus, **tainted, **({"unschedulable": True} if number % 31 == 30 else {}))
        )
        kind = rng.random()
        fill = (
            0.0
            if kind < 0.05
            else rng.uniform(0.03, 0.2)
            if kind < 0.17
            else rng.uniform(0.4, 0.7)
            if kind < 0.3
            else rng.uniform(0.8, 1)
        )
        cpu_left, memory_left, gpus_left = cpu * 1000 * fill, int(memory[:-2]) * 1024 * fill, round(gpus * fill)
        for at in range(100):
            lean = {"general": 3.5, "gpu": 3.0, "memory": 14.0}[pool]
            milli = rng.choice([500, 1000, 1500, 2000, 4000]) * (4 if gpus else 1)
            mebi = int(milli * lean * rng.uniform(0.6, 1.2))
            if milli > cpu_left or mebi > memory_left:
                break
            cpu_left, memory_left = cpu_left - milli, memory_left - mebi
            take = min(gpus_left, rng.choice([0, 0, 1]))
            gpus_left -= take
            objects.append(pod(f"run-{number}-{at}", f"{milli}m", f"{mebi}Mi", node_name=name, gpus=take))
    hardware = {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}
    for number in range(waiting):
        kind = number % 10
        if kind == 7:
            objects.append(pod(f"train-{number}", "30", "100Gi", gpus=8, **hardware))
        elif kind == 8:
            objects.append(pod(f"report-{number}", "64", "8Gi", namespace="batch"))
        elif kind == 9:
            objects.append(pod(f"edge-{number}", "500m", "256Mi", namespace="batch", nodeSelector={"site": "edge"}))
        else:
            objects.append(pod(f"web-{number}", f"{250 * (kind + 1)}m", f"{512 * (kind + 1)}Mi"))
    return objects


def write(path: Path, objects: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return path
