"""Which pods are there of the workloads of a cluster, by who controls them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from bayplan.api.meta_objects import ObjectMeta, controller_of
from bayplan.api.objects import Pod
from bayplan.cache.cache import is_finished
from bayplan.simulate.pod_batches import POD_TEMPLATE_HASH
from bayplan.simulate.workloads import Job, Workload

_RUN: Final = re.compile(r"(?P<cron>.+)-[0-9]+")
_NO_LABELS: Final[Mapping[str, str]] = {}

Key = tuple[str, str, str]
"""Namespace, kind and name of what owns pods."""


class OwnedPods:
    """Knows who owns the pods there are; pods that have ended or are being deleted do not count as there."""

    def __init__(self, workloads: Sequence[Workload], pods: Iterable[Pod]) -> None:
        self.names: set[tuple[str, str]] = set()
        """Namespaces and names that new pods cannot have."""
        self._by_key = {workload_key(each): each for each in workloads}
        self._pods: dict[Key, list[Pod]] = {}
        self._has_run: set[Key] = set()
        for pod in pods:
            self._take(pod)
        for each in workloads:
            owner = controller_of(each.metadata)
            if isinstance(each, Job) and owner is not None:
                self._has_run.add((each.metadata.namespace, owner.kind, owner.name))

    def of(self, owner: Key) -> Sequence[Pod]:
        """The pods that are there of a workload; a CronJob has none of its own."""
        return self._pods.get(owner, ())

    def leave(self, owner: Key, pods: Sequence[Pod]) -> None:
        """Have some of the pods of a workload be there no more."""
        gone = {pod.metadata.name for pod in pods}
        self._pods[owner] = [pod for pod in self.of(owner) if pod.metadata.name not in gone]
        self.names -= {(owner[0], name) for name in gone}

    def has_run(self, cron_job: Key) -> bool:
        """Whether a run of a CronJob is there, or was."""
        return cron_job in self._has_run

    def is_controlled(self, meta: ObjectMeta) -> bool:
        """Whether the workload that controls an object is among those given."""
        owner = controller_of(meta)
        return owner is not None and (meta.namespace, owner.kind, owner.name) in self._by_key

    def controlled(self, removed: Iterable[Key]) -> tuple[set[Key], set[str]]:
        """Return the workloads among `removed` with those that they control, and the uids of all their pods."""
        gone = set(removed)
        # A CronJob's Jobs, a Deployment's ReplicaSets: nothing is owned over more levels.
        for key, each in self._by_key.items():
            owner = controller_of(each.metadata)
            if owner is not None and (key[0], owner.kind, owner.name) in gone:
                gone.add(key)
        return gone, {pod.metadata.uid for key in gone for pod in self._pods.get(key, ())}

    def _take(self, pod: Pod) -> None:
        meta = pod.metadata
        owner = controller_of(meta)
        is_there = not is_finished(pod) and meta.deletion_timestamp is None
        if is_there or owner is None or owner.kind != "StatefulSet":
            # What is left of a StatefulSet's pod makes way for one of the same name.
            self.names.add((meta.namespace, meta.name))
        if owner is None:
            return
        if owner.kind == "Job" and (run := _RUN.fullmatch(owner.name)):
            self._has_run.add((meta.namespace, "CronJob", run["cron"]))
        if not is_there:
            return
        key = (meta.namespace, owner.kind, owner.name)
        self._pods.setdefault(key, []).append(pod)
        if owner.kind == "ReplicaSet" and (deployment := self._deployment_of(key, meta)) is not None:
            self._pods.setdefault((meta.namespace, "Deployment", deployment), []).append(pod)

    def _deployment_of(self, replica_set: Key, pod: ObjectMeta) -> str | None:
        known = self._by_key.get(replica_set)
        if known is not None:
            owner = controller_of(known.metadata)
            return owner.name if owner is not None and owner.kind == "Deployment" else None
        # Without the ReplicaSet its name tells: the Deployment's, and the hash that its pods are labelled with.
        suffix = f"-{(pod.labels or _NO_LABELS).get(POD_TEMPLATE_HASH, '')}"
        name = replica_set[2]
        return name.removesuffix(suffix) if len(suffix) > 1 and name.endswith(suffix) else None


def workload_key(workload: Workload) -> Key:
    """Return what `workload` is known by."""
    return workload.metadata.namespace, type(workload).__name__, workload.metadata.name
