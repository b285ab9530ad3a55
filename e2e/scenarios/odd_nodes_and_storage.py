"""Nodes that promise everything or nothing, pods placed without asking, and volumes nobody can use."""

from e2e.controlplane.client import ApiClient, Object, Objects
from e2e.controlplane.objects import claim, local_volume, node, pod, storage_class
from e2e.scenarios.odd_pods import MAX, expression, one

LABELS = {"pool": "plain", "size": "5"}
TAINT = {"key": "example.com/odd", "effect": "NoSchedule"}
ODD_NODES: dict[str, Object] = {
    "huge-1": {"cpu": "1e100", "memory": "1e100", "pods": "1e10"},
    "huge-2": {"cpu": "1e1000000", "memory": str(MAX), "pods": "110", "example.com/gpu": str(MAX)},
    "zero": {"cpu": "0", "memory": "0", "pods": "110"},
    "podless": {"cpu": "4", "memory": "8Gi", "pods": "0"},
    "bare": {},
}


def odd_node(name: str, amounts: Object) -> Object:
    document = node(name, labels={"pool": name.partition("-")[0]}, taints=[TAINT])
    document["status"] |= {"capacity": amounts, "allocatable": amounts}
    return document


def placed_elsewhere(namespace: str) -> Objects:
    """Pods somebody put on nodes without asking: one nobody knows, and one far too small."""
    placed: Objects = [
        pod("on-a-missing-node", namespace, scheduler="another", node_name="no-such-node"),
        pod("far-too-big", namespace, scheduler="another", node_name="overfull", requests={"cpu": "1e100"}),
        pod("too-big", namespace, scheduler="another", node_name="overfull", requests={"cpu": "100"}),
    ]
    return placed


def odd_storage(client: ApiClient, namespace: str) -> None:
    """Claims for more than there is, and volumes that no node can reach: `Gt` compares with a text."""
    client.create("storageclasses", storage_class(namespace))
    for name, amount in {"exabyte": "1Ei", "most": "1e100", "odd": "1m"}.items():
        client.create("persistentvolumeclaims", claim(name, namespace, namespace, amount))
    unreachable = expression("size", "Gt", "abc")
    for name, capacity in {"small": "1n", "odd": "1e18"}.items():
        odd = local_volume(f"{namespace}-{name}", namespace, unreachable, {}, storage=capacity)
        client.create("persistentvolumes", odd)
    change = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}}
    bound: Object = {**change, "spec": {"volumeName": f"{namespace}-odd"}}
    client.patch("persistentvolumeclaims", "odd", bound, namespace=namespace)
    for name, selector in {
        "none": None,
        "all": {},
        "empty": {"matchExpressions": [one("app", "DoesNotExist")]},
    }.items():
        budget: Object = {"maxUnavailable": "100%", "selector": selector}
        client.create("poddisruptionbudgets", {"metadata": {"name": name, "namespace": namespace}, "spec": budget})
