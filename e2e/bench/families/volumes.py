"""Workloads whose pods have volumes."""

from e2e.bench.families.workloads import Build, Size, Workload, make_nodes, make_workload
from e2e.controlplane.client import Object

CSI_DRIVER = "ebs.csi.aws.com"
_CSI_VOLUMES_PER_NODE = 39


def secrets(size: Size, scope: str) -> Workload:
    """All pods mount a Secret, which no scheduler looks at."""
    volumes = [{"name": "secret", "secret": {"secretName": "secret"}}]
    return make_workload(make_nodes(size.nodes), size, scope, lambda _: {"volumes": volumes})


def claims(csi: bool) -> Build:
    """A bound pair of claim and volume for every pod."""

    def build(size: Size, scope: str) -> Workload:
        nodes = make_nodes(size.nodes)
        work = make_workload(
            nodes, size, scope, lambda i: {"volumes": [_claim_volume(f"measured-{i:05d}")]},
            lambda i: {"volumes": [_claim_volume(f"init-{i:05d}")]},
        )  # fmt: skip
        if csi:
            driver = {"name": CSI_DRIVER, "nodeID": "n", "allocatable": {"count": _CSI_VOLUMES_PER_NODE}}
            work.objects += [
                (
                    "csinodes",
                    {
                        "apiVersion": "storage.k8s.io/v1",
                        "kind": "CSINode",
                        "metadata": {"name": each["metadata"]["name"]},
                        "spec": {"drivers": [driver]},
                    },
                )
                for each in nodes
            ]
        for each in (*work.init, *work.measured):
            work.objects += _bound_pair(scope, each["metadata"]["namespace"], each["metadata"]["name"], csi=csi)
        return work

    return build


def _claim_volume(name: str) -> Object:
    return {"name": "data", "persistentVolumeClaim": {"claimName": name}}


def _bound_pair(scope: str, namespace: str, name: str, *, csi: bool) -> list[tuple[str, Object]]:
    volume = f"{scope}-{name}"
    source = (
        {"csi": {"driver": CSI_DRIVER, "volumeHandle": volume}}
        if csi
        else {"nfs": {"server": "nfs.example.com", "path": f"/{volume}"}}
    )
    shared = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    persistent_volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": volume},
        "spec": {
            **shared,
            **source,
            "capacity": {"storage": "1Gi"},
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": name},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {**shared, "volumeName": volume, "resources": {"requests": {"storage": "1Gi"}}},
    }
    return [("persistentvolumes", persistent_volume), ("persistentvolumeclaims", claim)]
