"""One case at a time on a real API server: objects in, decisions out, everything gone again."""

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

from e2e.controlplane.client import ApiClient, ApiError
from tests.oracle.case import Case, Decision, Object, Scene
from tests.oracle.decision_log import DecisionLog
from tests.oracle.families.parts import NAMESPACES

logger = logging.getLogger(__name__)

_CORE, _APPS, _STORAGE = "/api/v1", "/apis/apps/v1", "/apis/storage.k8s.io/v1"
_POLICY = "/apis/policy/v1"

# Where each kind lives, and whether it is in a namespace.
_KINDS = {
    "Namespace": (_CORE, "namespaces", False),
    "Service": (_CORE, "services", True),
    "ReplicationController": (_CORE, "replicationcontrollers", True),
    "ReplicaSet": (_APPS, "replicasets", True),
    "StatefulSet": (_APPS, "statefulsets", True),
    "PodDisruptionBudget": (_POLICY, "poddisruptionbudgets", True),
    "PersistentVolume": (_CORE, "persistentvolumes", False),
    "PersistentVolumeClaim": (_CORE, "persistentvolumeclaims", True),
    "StorageClass": (_STORAGE, "storageclasses", False),
    "CSINode": (_STORAGE, "csinodes", False),
    "CSIDriver": (_STORAGE, "csidrivers", False),
    "CSIStorageCapacity": (_STORAGE, "csistoragecapacities", True),
    "VolumeAttachment": (_STORAGE, "volumeattachments", False),
}
_API_VERSIONS = {_CORE: "v1", _APPS: "apps/v1", _STORAGE: "storage.k8s.io/v1", _POLICY: "policy/v1"}
# Some kinds would wait for a garbage collector otherwise.
_AT_ONCE = {"propagationPolicy": "Background", "gracePeriodSeconds": 0}
_SETTLE_SECONDS = 0.25


class Stage:
    """Plays scenes in front of one kube-scheduler; `refused` counts pods that the API server did not take."""

    def __init__(self, client: ApiClient, log: DecisionLog) -> None:
        self._client = client
        self._log = log
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="stage")
        self.refused = 0

    def play(self, name: str, configuration: str, scene: Scene) -> Case:
        """Lets kube-scheduler decide about every incoming pod in turn; pods without a node leave before the next."""
        self._log.forget()
        others = [each for each in scene.objects if each["kind"] != "Namespace"]
        try:
            self._set_up(scene, others)
            incoming, decisions = [], []
            for pod in scene.incoming:
                decision = self._decide(pod)
                if decision is not None:
                    incoming.append(pod)
                    decisions.append(decision)
            return Case(name, configuration, Scene(scene.objects, scene.nodes, scene.placed, incoming), decisions)
        finally:
            self._clear(scene, others)

    def create_namespaces(self, namespaces: list[Object]) -> None:
        """Creates the namespaces that all scenes share; nothing would empty others."""
        for each in namespaces:
            self._create(each)

    def _set_up(self, scene: Scene, others: list[Object]) -> None:
        list(self._pool.map(self._create, others))
        list(self._pool.map(self._create_node, scene.nodes))
        taken = self._pool.map(self._place, scene.placed)
        scene.placed[:] = [pod for pod, is_there in zip(scene.placed, taken, strict=True) if is_there]
        changes = sum(("deletionTimestamp" in pod["metadata"]) + ("status" in pod) for pod in scene.placed)
        self._log.wait(
            lambda: (
                self._log.seen["node-add"] >= len(scene.nodes)
                and self._log.seen["pod-add"] >= len(scene.placed)
                and self._log.seen["pod-update"] >= changes
            ),
            "the cluster",
        )
        if others:
            # The log tells nothing of these kinds; their watches run beside those of nodes and pods.
            time.sleep(_SETTLE_SECONDS)

    def _decide(self, pod: Object) -> Decision | None:
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        try:
            self._client.create("pods", pod)
        except ApiError as error:
            if error.status != 422:
                raise
            logger.warning("pod refused error=%r", str(error))
            self.refused += 1
            return None
        decision = self._log.decision(f"{namespace}/{name}")
        if decision.node is None:
            self._client.delete("pods", name, namespace=namespace, grace_seconds=0)
        return decision

    def _create(self, each: Object) -> None:
        prefix, plural, namespaced = _KINDS[each["kind"]]
        document = {"apiVersion": _API_VERSIONS[prefix], **each}
        status = document.pop("status", None)
        middle = f"/namespaces/{each['metadata']['namespace']}" if namespaced else ""
        self._client.request("POST", f"{prefix}{middle}/{plural}", document)
        if status is not None:
            path = f"{prefix}{middle}/{plural}/{each['metadata']['name']}/status"
            self._client.request("PATCH", path, {"status": status}, "application/merge-patch+json")

    def _create_node(self, node: Object) -> None:
        self._client.create("nodes", node)

    def _place(self, pod: Object) -> bool:
        document = deepcopy(pod)
        ending = document["metadata"].pop("deletionTimestamp", None)
        status = document.pop("status", None)
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        try:
            self._client.create("pods", document)
        except ApiError as error:
            if error.status != 422:
                raise
            logger.warning("pod refused error=%r", str(error))
            self.refused += 1
            return False
        if status is not None:
            self._client.patch("pods", name, {"status": status}, namespace=namespace, subresource="status")
        if ending is not None:
            # Without a kubelet it stays, on its way out.
            self._client.delete("pods", name, namespace=namespace, grace_seconds=600)
        return True

    def _clear(self, scene: Scene, others: list[Object]) -> None:
        for namespace in NAMESPACES:
            self._client.delete_all("pods", namespace)
        self._client.delete_all("nodes")
        for prefix, plural, namespaced in {_KINDS[each["kind"]] for each in others}:
            for middle in [f"/namespaces/{name}" for name in NAMESPACES] if namespaced else [""]:
                self._client.request("DELETE", f"{prefix}{middle}/{plural}", _AT_ONCE)
        seen = self._log.seen
        self._log.wait(
            lambda: seen["node-delete"] >= seen["node-add"] and seen["pod-delete"] >= seen["pod-add"],
            "the end of the cluster",
        )
