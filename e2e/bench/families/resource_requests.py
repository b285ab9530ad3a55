"""Workloads whose pods ask for nothing but resources, which are free, or will be after preemption."""

from e2e.bench.families.workloads import PLAIN, Size, Workload, make_nodes, make_workload, plain_pod


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
    work.objects.append(
        (
            "priorityclasses",
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": f"{scope}-high"},
                "value": 10,
            },
        )
    )
    return work
