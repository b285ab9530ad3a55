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
    """Returns a pod with one container; keywords go into the spec under their API names."""
    amounts = requests if requests is not None else {"cpu": "100m", "memory": "128Mi"}
    placed = {"nodeName": node_name} if node_name is not None else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels or {})},
        "spec": {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 0,
            "containers": [container(amounts)],
            **placed,
            **spec,
        },
    }


def container(amounts: Mapping[str, object], name: str = "main", **more: object) -> Object:
    """Returns a container with these requests, as they are.

    An extended resource needs equal limits, so amounts with a slash in their name become limits too.
    """
    limits = {key: amount for key, amount in amounts.items() if "/" in key}
    resources = {"requests": dict(amounts), **({"limits": limits} if limits else {})}
    return {"name": name, "image": "registry.k8s.io/pause:3.10", "resources": resources, **more}


def pod_of_class(
    name: str, namespace: str, priority: str, cpu: str = "1", *, grace_seconds: int = 30, **fields: object
) -> Object:
    """Returns a pod of a PriorityClass with a grace period; the other keywords are those of `pod`."""
    return pod(
        name,
        namespace,
        requests={"cpu": cpu},
        priorityClassName=priority,
        terminationGracePeriodSeconds=grace_seconds,
        **fields,  # type: ignore[arg-type]  # names of the spec, or of the builder
    )


def storage_class(name: str, provisioner: str = "kubernetes.io/no-provisioner") -> Object:
    """Returns a StorageClass whose volumes wait for their first consumer."""
    return {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}


def claim(name: str, namespace: str, class_name: str, storage: str = "1Gi", **spec: object) -> Object:
    """Returns a PersistentVolumeClaim of one reader and writer."""
    requests = {"requests": {"storage": storage}}
    wanted = {"accessModes": ["ReadWriteOnce"], "storageClassName": class_name, "resources": requests, **spec}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": wanted}


def volume(name: str, class_name: str, storage: str = "1Gi", **spec: object) -> Object:
    """Returns a PersistentVolume of one reader and writer; `spec` has its source."""
    return {
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_name,
            "capacity": {"storage": storage},
            "persistentVolumeReclaimPolicy": "Retain",
            **spec,
        },
    }


def local_volume(name: str, class_name: str, *terms: Object, storage: str = "1Gi") -> Object:
    """Returns a PersistentVolume that the nodes of these node selector terms reach."""
    reach = {"required": {"nodeSelectorTerms": list(terms)}}
    return volume(name, class_name, storage, local={"path": "/mnt/disk"}, nodeAffinity=reach)
