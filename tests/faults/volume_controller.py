"""What makes volumes and binds claims a moment after the scheduler has chosen, as controllers do."""

from tests.faults.api_server import Object
from tests.faults.memory_api import NODES, MemoryApi

CLAIMS = "/api/v1/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BOUND = "pv.kubernetes.io/bind-completed"

_BIND_SECONDS = 0.2
_PROVISION_SECONDS = 0.6


class VolumeController:
    """Binds claims to the volumes that name them, and makes a volume for a claim that names a node.

    Where that node is gone it takes the choice back, as a provisioner that fails does. Two classes are there, which
    both wait for a pod: of `local` somebody makes the volumes, of `made` a provisioner does.
    """

    def __init__(self, api: MemoryApi) -> None:
        self._api = api
        for name, provisioner in (("local", "kubernetes.io/no-provisioner"), ("made", "csi.example")):
            mode = "WaitForFirstConsumer"
            api.put(CLASSES, {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode})
        api.watchers.append(self._changed)

    def _changed(self, collection: str, obj: Object) -> None:
        if collection == VOLUMES and obj["spec"].get("claimRef"):
            self._api.later(_BIND_SECONDS, lambda: self._bind(obj["metadata"]["name"]))
        elif collection == CLAIMS and is_to_be_made(obj):
            self._api.later(_PROVISION_SECONDS, lambda: self._provision(obj["metadata"]["name"]))

    def _bind(self, volume_name: str) -> None:
        volume = self._api.objects[VOLUMES][volume_name]
        reference = volume["spec"]["claimRef"]
        claim = self._claim(reference["name"])
        if claim is None or claim["metadata"]["uid"] != reference["uid"] or claim["spec"].get("volumeName"):
            return
        metadata = {**claim["metadata"], "annotations": {**_annotations(claim), BOUND: "yes"}}
        spec = {**claim["spec"], "volumeName": volume_name}
        self._api.put(CLAIMS, {**claim, "metadata": metadata, "spec": spec, "status": {"phase": "Bound"}})

    def _provision(self, claim_name: str) -> None:
        claim = self._claim(claim_name)
        if claim is None or not is_to_be_made(claim):
            return
        node = self._api.objects[NODES].get(_annotations(claim)[SELECTED_NODE])
        if node is None:
            kept = {key: value for key, value in _annotations(claim).items() if key != SELECTED_NODE}
            self._api.put(CLAIMS, {**claim, "metadata": {**claim["metadata"], "annotations": kept}})
            return
        meta = claim["metadata"]
        reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": claim_name, "uid": meta["uid"]}
        volume = volume_object(f"for-{meta['uid']}", node["metadata"]["labels"]["zone"], class_name="made")
        if volume["metadata"]["name"] not in self._api.objects.get(VOLUMES, {}):
            self._api.put(VOLUMES, {**volume, "spec": {**volume["spec"], "claimRef": reference}})

    def _claim(self, name: str) -> Object | None:
        return self._api.objects.get(CLAIMS, {}).get(f"default/{name}")


def is_to_be_made(claim: Object) -> bool:
    """Whether a provisioner has work with the claim."""
    chosen = _annotations(claim).get(SELECTED_NODE)
    return bool(chosen) and not claim["spec"].get("volumeName") and claim["spec"]["storageClassName"] == "made"


def has_volume_on(api: MemoryApi, pod: Object, node: Object) -> bool:
    """Whether the pod's claim, if it has one, has a volume that the node reaches, or can get one."""
    for volume in pod["spec"].get("volumes", ()):
        claim = api.objects.get(CLAIMS, {}).get(f"default/{volume['persistentVolumeClaim']['claimName']}")
        if claim is None:
            return False
        volumes = api.objects.get(VOLUMES, {})
        if claim["spec"].get("volumeName"):
            if not _reaches(node, volumes[claim["spec"]["volumeName"]]):
                return False
        elif claim["spec"]["storageClassName"] == "local" and not any(
            each["spec"]["storageClassName"] == "local"
            and each["spec"].get("claimRef", claim["metadata"])["uid"] == claim["metadata"]["uid"]
            and _reaches(node, each)
            for each in volumes.values()
        ):
            return False
    return True


def volume_object(name: str, zone: str, *, class_name: str = "local") -> Object:
    """A volume that the nodes of a zone reach."""
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": class_name,
        "capacity": {"storage": "1Gi"},
        "local": {"path": "/mnt"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    metadata = {"name": name, "labels": {"zone": zone}}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Available"}}


def claim_object(name: str, class_name: str) -> Object:
    """A claim of one reader and writer."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": class_name,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec, "status": {"phase": "Pending"}}


def _annotations(claim: Object) -> dict[str, str]:
    return dict(claim["metadata"].get("annotations") or {})


def _reaches(node: Object, volume: Object) -> bool:
    return bool(node["metadata"]["labels"]["zone"] == volume["metadata"]["labels"]["zone"])
