"""Workloads in which pods that can never be bound wait beside those that are measured."""

from e2e.bench.families.workloads import Size, Workload, make_nodes, make_pods, make_workload, plain_pod


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
