"""Builders of the API objects scenarios need, as the JSON the API server takes."""

from collections.abc import Mapping, Sequence

from e2e.controlplane.client import Object


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: str = "110",
    resources: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    unschedulable: bool = False,
) -> Object:
    """Returns a Ready node whose allocatable is its capacity; `resources` adds extended resources."""
    amounts = {"cpu": cpu, "memory": memory, "pods": pods, **(resources or {})}
    spec: Object = {"unschedulable": True} if unschedulable else {}
    if taints:
        spec["taints"] = [dict(taint) for taint in taints]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def pod(
    name: str,
    namespace: str,
    *,
    scheduler: str = "bayplan",
    requests: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    node_name: str | None = None,
    **spec: object,
) -> Object:
    """Returns a pod with one container; keywords go into the spec under their API names.

    An extended resource needs equal limits, so amounts with a slash in their name become limits too.
    """
    amounts = dict(requests if requests is not None else {"cpu": "100m", "memory": "128Mi"})
    limits = {key: amount for key, amount in amounts.items() if "/" in key}
    container = {
        "name": "main",
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"requests": amounts, **({"limits": limits} if limits else {})},
    }
    placed = {"nodeName": node_name} if node_name is not None else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels or {})},
        "spec": {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            **placed,
            **spec,
        },
    }
