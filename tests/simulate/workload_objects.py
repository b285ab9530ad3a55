"""Workloads, their pods and nodes, as files have them."""

LABELS = {"app": "web"}
TEMPLATE = {
    "metadata": {"labels": LABELS},
    "spec": {
        "schedulerName": "bayplan",
        "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "500m"}}}],
    },
}


def workload(kind, name="web", *, template=TEMPLATE, status=None, owner=None, **spec):
    version = {"Job": "batch/v1", "CronJob": "batch/v1", "ReplicationController": "v1"}.get(kind, "apps/v1")
    if kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"):
        spec = {"selector": {"matchLabels": LABELS}, **spec}
    metadata = {"name": name} if owner is None else {"name": name, "ownerReferences": [owner]}
    body = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {"template": template, **spec}}
    return body if status is None else {**body, "status": status}


def owner(kind, name):
    return {"kind": kind, "name": name, "controller": True}


def pod(name, owned_by, *, labels=LABELS, phase="Running", node="n1", **metadata):
    metadata = {"name": name, "labels": labels, "ownerReferences": [owned_by], **metadata}
    spec = {**TEMPLATE["spec"], "nodeName": node}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}}


def node(name, *, labels=None, taints=(), cpu=4):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": {"cpu": cpu, "pods": 110}},
    }
