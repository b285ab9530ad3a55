"""One case at a time on a real API server: objects in, decisions out, everything gone again."""

import logging
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace

from e2e.controlplane.client import ApiClient, ApiError, path_of
from tests.oracle.case import Case, Decision, Object, Scene
from tests.oracle.claims import DEALLOCATED, RESOURCE, allocated, claims_of, create_claim, let_go, make_claims
from tests.oracle.decision_log import DecisionLog, key_of
from tests.oracle.families.parts import NAMESPACES, namespaces
from tests.oracle.families.preemption import GATE, NOMINATED

from bayplan.api.kinds import CLAIM_TEMPLATES, RESOURCES

logger = logging.getLogger(__name__)

_RESOURCES = {resource.kind: resource for resource in (*RESOURCES, CLAIM_TEMPLATES)}
# Some kinds would wait for a garbage collector otherwise.
_AT_ONCE = {"propagationPolicy": "Background", "gracePeriodSeconds": 0}
_RANKING_SECONDS = 0.6
_SETTLE_SECONDS = 0.25
_KINDS = ("node", "pod", "slice")
_OVERTAKEN = (404, 409)
_TRIES = 5
# Containers are told apart by their names, and keep what is not named.
_BY_NAME = "application/strategic-merge-patch+json"
_MERGE = "application/merge-patch+json"


class Stage:
    """Plays scenes in front of one kube-scheduler; `refused` counts pods that the API server did not take."""

    def __init__(self, client: ApiClient, log: DecisionLog) -> None:
        self._client = client
        self._log = log
        self._victims: set[str] = set()
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="stage")
        self.refused = 0

    def play(self, name: str, configuration: str, scene: Scene) -> Case:
        """Lets kube-scheduler decide about every incoming pod, and again if it took the first for one of another scene.

        A scene is begun anew, too, where kube-scheduler wrote or deleted what was about to be written.
        OpportunisticBatching keeps a ranking for half a second, and scenes have alike pods and names of nodes.
        """
        missed = 0
        while True:
            try:
                case = self._play(name, configuration, scene)
            except ApiError as error:
                missed += 1
                if error.status not in _OVERTAKEN or missed == _TRIES:
                    raise
                logger.warning("scene begun anew case=%s error=%r", name, str(error))
                continue
            if not (case.decisions and case.decisions[0].hinted):
                return case
            time.sleep(_RANKING_SECONDS)

    def _play(self, name: str, configuration: str, scene: Scene) -> Case:
        """Lets kube-scheduler decide about every incoming pod in turn; pods without a node leave before the next.

        The scene is over early when a preemptor did not wait for its victims but found its place elsewhere, and when a
        claim gave its devices back: what follows happens between two decisions, at no time that could be told.
        """
        self._log.forget()
        self._victims.clear()
        others = [each for each in scene.objects if each["kind"] != "Namespace"]
        try:
            self._set_up(scene, others)
            incoming, decisions, updates = [], [], []
            for index, pod in enumerate(scene.incoming):
                made = [each for each in scene.updates_after(index) if self._update(each)]
                updates += [{**each, "after": len(decisions)} for each in made]
                decision = self._decide(pod, scene)
                if self._log.tried_again:
                    break
                if decision is not None:
                    incoming.append(pod)
                    decisions.append(decision)
                    if DEALLOCATED in (decision.message or ""):
                        break
            return Case(name, configuration, replace(scene, incoming=incoming, updates=updates), decisions)
        finally:
            self._clear(others)

    def _set_up(self, scene: Scene, others: list[Object]) -> None:
        list(self._pool.map(self._create, others))
        # In the order of the scene, which is the order that a search for nodes follows.
        for node in scene.nodes:
            self._client.create("nodes", node)
        taken = self._pool.map(self._create_pod, scene.placed)
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
        list(self._pool.map(self._create_pod, scene.foreign))
        if others or scene.foreign:
            # The log tells nothing of most of these; their watches run beside those of nodes and pods.
            time.sleep(_SETTLE_SECONDS)
        slices = sum(each["kind"] == "ResourceSlice" for each in others)
        self._log.wait(lambda: self._log.seen["slice-add"] >= slices, "the devices")

    def _update(self, changed: Object) -> bool:
        """Makes a node or a placed pod what it is to be, and waits until that is seen; whether it was taken."""
        if changed.keys() & {"patch", "created", "deleted"}:
            return self._change(changed)
        name, namespace = changed["metadata"]["name"], changed["metadata"].get("namespace")
        seen = self._log.seen_of
        kind, key = ("pod-update", key_of(changed["metadata"])) if namespace else ("node-update", name)
        if key in self._victims:
            # What its eviction wrote may still come, and would be taken for this update.
            time.sleep(_SETTLE_SECONDS)
        expected = seen[kind, key] + 1
        if "spec" in changed:
            change = {"spec": {"containers": changed["spec"]["containers"]}}
            subresource, content_type = "resize", _BY_NAME
        else:
            change = {"metadata": changed["metadata"], "status": changed["status"]}
            subresource, content_type = "status", _MERGE
        resource = "pods" if namespace else "nodes"
        try:
            self._client.patch(
                resource, name, change, namespace=namespace, subresource=subresource, content_type=content_type
            )
        except ApiError as error:
            if error.status not in (403, 404, 422):
                raise
            logger.warning("update refused error=%r", str(error))
            return False
        self._log.wait(lambda: seen[kind, key] >= expected, f"the update of {key}")
        return True

    def _change(self, changed: Object) -> bool:
        """Has an object come, change or go, and waits until that is seen; whether it was there."""
        plural = {"Node": "nodes", "Pod": "pods"}.get(changed["kind"]) or _RESOURCES[changed["kind"]].plural
        key = key_of(changed["metadata"])
        name, namespace = changed["metadata"]["name"], changed["metadata"].get("namespace")
        patch = changed.get("patch", {})
        ends = "deleted" in changed or patch.get("status", {}).get("phase") == "Succeeded"
        event = "delete" if ends else "add" if "created" in changed else "update"
        kind = f"{changed['kind'].lower()}-{event}"
        expected = self._log.seen_of[kind, key] + 1
        try:
            if "created" in changed:
                self._client.create(plural, changed["created"])
            elif "deleted" in changed:
                self._client.delete(plural, name, namespace=namespace, grace_seconds=0)
            else:
                subresource = "status" if "status" in patch else None
                self._client.patch(plural, name, patch, namespace=namespace, subresource=subresource)
        except ApiError as error:
            if error.status not in (403, 404, 422):
                raise
            logger.warning("change refused error=%r", str(error))
            return False
        if changed["kind"] in ("Node", "Pod"):
            self._log.wait(lambda: self._log.seen_of[kind, key] >= expected, f"{kind} of {key}")
        else:
            time.sleep(_SETTLE_SECONDS)
        return True

    def _decide(self, pod: Object, scene: Scene) -> Decision | None:
        """None for a pod that was refused; preemptors and their ending victims stay until the scene is over."""
        key = key_of(pod["metadata"])
        seen_before = self._log.seen_of.copy()
        if not self._submit(pod):
            return None
        if "schedulingGates" in pod["spec"]:
            return Decision()
        namespace, name = key.split("/")
        if "resourceClaims" in pod["spec"]:
            templates = (each for each in scene.objects if each["kind"] == CLAIM_TEMPLATES.kind)
            uid = self._client.get("pods", name, namespace)["metadata"]["uid"]
            make_claims(self._client, pod, uid, templates)
        decision = self._log.decision(key)
        if decision.node is not None:
            if _has_devices(scene.objects):
                decision.claims = allocated(claims_of(self._client, pod))
        else:
            self._log.wait(lambda: key in self._log.nominations, f"the condition of {key}")
            had_one = bool(pod.get("status", {}).get(NOMINATED))
            decision.nomination_ended = had_one and decision.nominated is None and self._log.nominations[key]
        if decision.nominated is not None:
            self._wait_for_victims(key, decision.candidates[decision.nominated], seen_before)
        elif decision.node is None:
            self._client.delete("pods", name, namespace=namespace, grace_seconds=0)
        return decision

    def _submit(self, pod: Object) -> bool:
        """Creates a pod to schedule; one with a nomination waits at a gate until the scheduler knows of it."""
        if "status" not in pod:
            return self._create_pod(pod)
        held = {**pod, "spec": {**pod["spec"], "schedulingGates": GATE}}
        if not self._create_pod(held):
            return False
        key = key_of(pod["metadata"])
        self._log.wait(lambda: self._log.seen_of["waiting-pod-update", key] > 0, "a nomination")
        if "schedulingGates" not in pod["spec"]:
            namespace, name = key.split("/")
            self._client.patch("pods", name, {"spec": {"schedulingGates": []}}, namespace=namespace)
        return True

    def _wait_for_victims(self, key: str, victims: list[str], before: Counter[tuple[str, str]]) -> None:
        """Until all victims are ending in the scheduler's eyes: each is told why, and then deleted."""
        evictions, seen = self._log.evictions[key], self._log.seen_of

        def is_done() -> bool:
            ending = set(evictions.ending)
            return (evictions.finished or ending == set(victims)) and all(
                seen["pod-update", each] >= before["pod-update", each] + 2 for each in victims if each not in ending
            )

        self._log.wait(is_done, f"the end of the victims of {key}")
        self._victims.update(victims)
        assert sorted(evictions.ended + evictions.ending) == sorted(victims), (key, evictions)

    def _create(self, each: Object) -> None:
        resource = _RESOURCES[each["kind"]]
        document = {"apiVersion": resource.api_version, **each}
        status = document.pop("status", None)
        if resource.plural == RESOURCE:
            create_claim(self._client, document)
        else:
            self._client.create(resource.plural, document)
        if status is not None:
            name, namespace = each["metadata"]["name"], each["metadata"].get("namespace")
            self._client.patch(resource.plural, name, {"status": status}, namespace=namespace, subresource="status")

    def _create_pod(self, pod: Object) -> bool:
        """Creates a pod with its status, on its way out if it has a deletion timestamp; whether it was taken."""
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
            # Without a kubelet it stays.
            self._client.delete("pods", name, namespace=namespace, grace_seconds=600)
        return True

    def _clear(self, others: list[Object]) -> None:
        for namespace in NAMESPACES:
            self._client.delete_all("pods", namespace)
        self._client.delete_all("nodes")
        for each in namespaces():
            labels = {"team": None, "env": None, **each["metadata"]["labels"]}
            self._client.patch("namespaces", each["metadata"]["name"], {"metadata": {"labels": labels}})
        if _has_devices(others):
            let_go(self._client, NAMESPACES)
        for resource in {_RESOURCES[each["kind"]] for each in others}:
            for namespace in NAMESPACES if resource.namespaced else [None]:
                self._client.request("DELETE", path_of(resource.plural, namespace=namespace), _AT_ONCE)
        seen, binding = self._log.seen, self._log.binding
        # What is still assumed would count on the next scene's node of the same name.
        self._log.wait(
            lambda: all(seen[f"{kind}-delete"] >= seen[f"{kind}-add"] for kind in _KINDS) and not binding,
            "the end of the cluster",
        )


def _has_devices(objects: Iterable[Object]) -> bool:
    return any(each["kind"] == "DeviceClass" for each in objects)
