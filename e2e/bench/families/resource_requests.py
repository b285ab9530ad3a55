"""Workloads whose pods request nothing but resources: free ones, those of victims, or beside pods that never fit."""

from e2e.bench.families.workloads import PLAIN, Size, Workload, make_nodes, make_pods, make_workload, plain_pod


def basic(size: Size, scope: str) -> Workload:
    """Plain pods on plain nodes."""
    return make_workload(make_nodes(size.nodes), size, scope, plain_pod)


def extended(size: Size, scope: str) -> Workload:
    """Each pod needs one of the ten extended resources that its node has."""
    nodes = make_nodes(size.nodes, resources={"foo.com/bar": "10"})
    return make_workload(nodes, size, scope, lambda _: {"requests": {**PLAIN, "foo.com/bar": "1"}})


def preemption(size: Size, scope: str) -> Workload:
    """Every node full of four pods of low priority; each measured pod needs three of them gone."""
    low = {"requests": {"cpu": "900m", "memory": "500Mi"}}
    high = {"requests": {"cpu": "3000m", "memory": "500Mi"}, "priorityClassName": f"{scope}-high"}
    work = make_workload(make_nodes(size.nodes), size, scope, lambda _: high, lambda _: low)
    work.objects.append(("priorityclasses", {"metadata": {"name": f"{scope}-high"}, "value": 10}))
    return work


def unschedulable(size: Size, scope: str) -> Workload:
    """The waiting pods request more than any node has."""
    work = make_workload(make_nodes(size.nodes), Size(size.nodes, 0, size.measured), scope, plain_pod)
    work.pending = make_pods(lambda _: {"requests": {"cpu": "9", "memory": "500Mi"}}, "large", size.init, f"{scope}-0")
    return work


def gated(size: Size, scope: str) -> Workload:
    """The waiting pods have a scheduling gate."""
    work = make_workload(make_nodes(size.nodes), Size(size.nodes, 0, size.measured), scope, plain_pod)
    # One node takes them all, as in scheduler_perf.
    work.nodes[0]["status"]["allocatable"] |= {"cpu": "90000", "memory": "90000Gi", "pods": "90000"}
    gate = {"schedulingGates": [{"name": "example.com/gate"}]}
    work.pending = make_pods(lambda _: gate, "gated", size.init, f"{scope}-0")
    return work
