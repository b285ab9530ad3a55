"""Workloads whose pods have volumes."""

from e2e.bench.families.workloads import Build, Size, Workload, make_nodes, make_workload
from e2e.controlplane.client import Object
from e2e.controlplane.objects import claim, volume

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
            for each in nodes:
                csi_node = {"metadata": {"name": each["metadata"]["name"]}, "spec": {"drivers": [driver]}}
                work.objects.append(("csinodes", csi_node))
        for each in (*work.init, *work.measured):
            work.objects += _bound_pair(scope, each["metadata"]["namespace"], each["metadata"]["name"], csi=csi)
        return work

    return build


def _claim_volume(name: str) -> Object:
    return {"name": "data", "persistentVolumeClaim": {"claimName": name}}


def _bound_pair(scope: str, namespace: str, name: str, *, csi: bool) -> list[tuple[str, Object]]:
    volume_name = f"{scope}-{name}"
    source: Object = (
        {"csi": {"driver": CSI_DRIVER, "volumeHandle": volume_name}}
        if csi
        else {"nfs": {"server": "nfs.example.com", "path": f"/{volume_name}"}}
    )
    reference = {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": name}
    bound = claim(name, namespace, "", volumeName=volume_name)
    bound["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    return [
        ("persistentvolumes", volume(volume_name, "", claimRef=reference, **source)),
        ("persistentvolumeclaims", bound),
    ]
