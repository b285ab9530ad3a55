"""Which pods the controllers of Deployments and other workloads have, would still make, and under which names."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count, islice
from typing import Any, Final

from bayplan.api.meta_objects import ObjectMeta, OwnerReference, controller_of
from bayplan.api.objects import Node, Pod
from bayplan.cache.cache import is_finished
from bayplan.simulate.pod_batches import (
    POD_TEMPLATE_HASH,
    Member,
    PodBatch,
    digest,
    labelled,
    left_indexes,
    node_of,
    nodes_for,
    own_batch,
    reference,
    replica_set,
    suffixed,
    with_tolerations,
    without_hash,
)
from bayplan.simulate.refusals import MAX_NAME, AdmissionError
from bayplan.simulate.workloads import (
    API_VERSIONS,
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    PodTemplate,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    Workload,
    asking_for_one_more,
)

_NO_LABELS: Final[Mapping[str, str]] = {}
_RUN: Final = re.compile(r"(?P<cron>.+)-[0-9]+")

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


MAX_PODS: Final = 1_000_000
"""Most pods that are made of the workloads of all files: somewhat more than the largest clusters known hold."""

_REVISION: Final = "controller-revision-hash"
_INDEX: Final = "batch.kubernetes.io/job-completion-index"


class Controllers:
    """Knows the workloads and the pods that are there of them."""

    def __init__(
        self, workloads: Sequence[Workload], owned: OwnedPods, nodes: Sequence[Node], most_pods: int = MAX_PODS
    ) -> None:
        self._owned = owned
        self._nodes = nodes
        self._most = self._left = most_pods
        self._replica_sets: dict[Key, list[ReplicaSet]] = {}
        for each in workloads:
            owner = controller_of(each.metadata)
            if isinstance(each, ReplicaSet) and owner is not None:
                self._replica_sets.setdefault((each.metadata.namespace, owner.kind, owner.name), []).append(each)

    def batch(self, workload: Workload) -> PodBatch | None:
        """Return what the workload is still to make; None where that is nothing.

        Raises:
            AdmissionError: it asks for more pods than a simulation makes.
        """
        meta = workload.metadata
        if meta.deletion_timestamp is not None or (
            isinstance(workload, ReplicaSet) and self._owned.is_controlled(meta)
        ):
            # The Deployment that owns it counts its pods.
            return None
        if isinstance(workload, CronJob) and (workload.spec.suspend or self._owned.has_run(workload_key(workload))):
            return None
        made = _PLANS[type(workload)](self, workload)
        return made if made is not None and made.members else None

    def one_more(self, workload: Workload) -> PodBatch | None:
        """Return one pod as the workload would make it, however many it has or asks for; None for a DaemonSet.

        Raises:
            AdmissionError: there is no room for one more.
        """
        if isinstance(workload, DaemonSet):
            return None
        there = len(self._owned.of(workload_key(workload)))
        batch = _PLANS[type(workload)](self, asking_for_one_more(workload, there))
        return None if batch is None or not batch.members else replace(batch, members=batch.members[:1])

    def _of_deployment(self, deployment: Deployment) -> PodBatch:
        members = self._lacking(deployment)
        found, made = self._newest_replica_set(deployment), None
        if found is None:
            hashed = digest(deployment.spec.template)
            made = replica_set(deployment, hashed)
        else:
            hashed = (found.metadata.labels or _NO_LABELS).get(POD_TEMPLATE_HASH, "")
        meta = (found or made or deployment).metadata
        owner = OwnerReference(API_VERSIONS[ReplicaSet], "ReplicaSet", meta.name, meta.uid, controller=True)
        template = labelled(deployment.spec.template, {POD_TEMPLATE_HASH: hashed} if hashed else _NO_LABELS)
        return PodBatch(meta.namespace, template, members, owner, replica_set=made)

    def _newest_replica_set(self, deployment: Deployment) -> ReplicaSet | None:
        wanted = deployment.spec.template
        same = [each for each in self._replica_sets.get(workload_key(deployment), ()) if without_hash(each) == wanted]
        return max(same, key=lambda each: each.metadata.creation_timestamp or "", default=None)

    def _of_replicated(self, workload: Any) -> PodBatch:  # noqa: ANN401 - a ReplicaSet or a ReplicationController
        return own_batch(workload, self._lacking(workload))

    def _of_stateful_set(self, workload: StatefulSet) -> PodBatch:
        meta, spec = workload.metadata, workload.spec
        start, wanted = spec.ordinals.start, 1 if spec.replicas is None else spec.replicas
        self._check_room(wanted, "spec.replicas")
        members = []
        for ordinal in range(start, start + wanted):
            name = f"{meta.name}-{ordinal}"
            if self._take_name(meta.namespace, name):
                labels = {"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": str(ordinal)}
                members.append(Member(name, labels))
        self._left -= len(members)
        revision = f"{meta.name}-{digest(spec.template)}"
        return own_batch(workload, members, {_REVISION: revision}, spec.volume_claim_templates or ())

    def _of_daemon_set(self, workload: DaemonSet) -> PodBatch:
        meta = workload.metadata
        template = with_tolerations(workload.spec.template)
        there = {node_of(pod) for pod in self._owned.of(workload_key(workload))}
        nodes = [each for each in nodes_for(template.spec, self._nodes) if each not in there]
        self._check_room(len(nodes), "spec.template")
        self._left -= len(nodes)
        members = []
        for number, node in enumerate(nodes, 1):
            name = f"{meta.name}-{node}"
            if len(name) > MAX_NAME or not self._take_name(meta.namespace, name):
                name = self._free_name(meta, count(number))
            members.append(Member(name, node=node))
        batch = own_batch(workload, members, {_REVISION: digest(workload.spec.template)})
        return replace(batch, template=labelled(template, batch.template.metadata.labels or _NO_LABELS))

    def _of_job(self, job: Job) -> PodBatch | None:
        if any(each.type in ("Complete", "Failed") and each.status == "True" for each in job.status.conditions or ()):
            return None
        return self._run(job, "spec")

    def _of_cron_job(self, cron: CronJob) -> PodBatch | None:
        namespace, name = cron.metadata.namespace, f"{cron.metadata.name}-1"
        meta = ObjectMeta(name=name, namespace=namespace, uid=f"file:Job/{namespace}/{name}")
        return self._run(Job(meta, cron.spec.job_template.spec), "spec.jobTemplate.spec")

    def _run(self, job: Job, path: str) -> PodBatch | None:
        """The pods of a Job that run at the same time (upstream: pkg/controller/job manageJob)."""
        meta, spec = job.metadata, job.spec
        if spec.suspend:
            return None
        active = self._owned.of((meta.namespace, "Job", meta.name))
        parallelism = 1 if spec.parallelism is None else spec.parallelism
        succeeded = max(job.status.succeeded, 0)
        completions = 1 if spec.completions is None and spec.parallelism is None else spec.completions
        if completions is None:
            # A work queue: once one has succeeded, no more are started.
            wanted = 0 if succeeded else parallelism
        else:
            wanted = min(parallelism, max(completions - succeeded, 0))
        missing = max(wanted - len(active), 0)
        self._check_room(missing, f"{path}.parallelism")
        labels = {"batch.kubernetes.io/job-name": meta.name, "job-name": meta.name}
        template = labelled(spec.template, labels)
        if spec.completion_mode == "Indexed":
            self._check_room(completions or 0, f"{path}.completions")
            running = {(pod.metadata.labels or _NO_LABELS).get(_INDEX) for pod in active}
            left = left_indexes(completions or 0, job.status.completed_indexes)
            indexes = islice((each for each in left if str(each) not in running), missing)
            members = [Member(self._free_name(meta, count(each)), {_INDEX: str(each)}) for each in indexes]
            self._left -= len(members)
        else:
            members = self._numbered(meta, missing, f"{path}.parallelism")
        return PodBatch(meta.namespace, template, members, reference(job))

    def _of_pod_template(self, workload: PodTemplate) -> PodBatch:
        meta = workload.metadata
        name = meta.name if self._take_name(meta.namespace, meta.name) else self._free_name(meta, count(1))
        return PodBatch(meta.namespace, workload.template, [Member(name)])

    def _lacking(self, workload: Deployment | ReplicaSet | ReplicationController) -> list[Member]:
        wanted = 1 if workload.spec.replicas is None else workload.spec.replicas
        missing = max(wanted - len(self._owned.of(workload_key(workload))), 0)
        return self._numbered(workload.metadata, missing, "spec.replicas")

    def _numbered(self, meta: ObjectMeta, wanted: int, path: str) -> list[Member]:
        """So many pods called after the workload; numbers that other pods have are left out."""
        self._check_room(wanted, path)
        self._left -= wanted
        numbers = count(1)
        return [Member(self._free_name(meta, numbers)) for _ in range(wanted)]

    def _free_name(self, meta: ObjectMeta, numbers: Iterable[int]) -> str:
        names = (suffixed(meta.name, number) for number in numbers)
        return next(name for name in names if self._take_name(meta.namespace, name))

    def _take_name(self, namespace: str, name: str) -> bool:
        if (namespace, name) in self._owned.names:
            return False
        self._owned.names.add((namespace, name))
        return True

    def _check_room(self, count: int, path: str) -> None:
        if count > self._left:
            raise AdmissionError(f"{path}: {count} pods more are more than the {self._most} that a simulation makes")


_PLANS: Final[Mapping[type, Callable[[Controllers, Any], PodBatch | None]]] = {
    Deployment: Controllers._of_deployment,  # noqa: SLF001 - the class's own table
    ReplicaSet: Controllers._of_replicated,  # noqa: SLF001 - as above
    ReplicationController: Controllers._of_replicated,  # noqa: SLF001 - as above
    StatefulSet: Controllers._of_stateful_set,  # noqa: SLF001 - as above
    DaemonSet: Controllers._of_daemon_set,  # noqa: SLF001 - as above
    Job: Controllers._of_job,  # noqa: SLF001 - as above
    CronJob: Controllers._of_cron_job,  # noqa: SLF001 - as above
    PodTemplate: Controllers._of_pod_template,  # noqa: SLF001 - as above
}
