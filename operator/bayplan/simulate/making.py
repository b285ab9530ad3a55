"""The pods that the controllers of all workloads of a cluster would make, as the API server would have them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec import structs

from bayplan.api.meta_objects import ObjectMeta, key_of
from bayplan.api.objects import Node, Pod, Volume
from bayplan.api.quantity import QuantityError
from bayplan.api.storage_objects import PersistentVolumeClaim
from bayplan.cache.listers import NamedObject
from bayplan.cache.pod_info import PodInfo
from bayplan.simulate.admission import Admission
from bayplan.simulate.controllers import Controllers, OwnedPods, workload_key
from bayplan.simulate.documents import ClusterFileError, RawObject, title
from bayplan.simulate.pod_batches import POD_TEMPLATE_HASH, PodBatch, made_claims, made_pods
from bayplan.simulate.refusals import AdmissionError
from bayplan.simulate.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    PodTemplate,
    StatefulSet,
    Workload,
    template_of,
)


@dataclass
class Making:
    """Makes pods once; `skip` is told of workloads that make none and should, why, and the number of their pods."""

    admission: Admission
    nodes: Sequence[Node]
    most_pods: int
    added: dict[str, list[PodInfo]]
    """Is filled with the pods of added workloads, by where the workload stands."""
    replaced: Mapping[str, Workload]
    """What was there before of the same name, likewise."""
    skip: Callable[[RawObject, str, int], None]
    making_way: list[PodInfo] = field(default_factory=list)
    """The pods that leave before some of a changed template are tried."""
    notes: list[str] = field(default_factory=list)

    def pods_of(
        self, workloads: Sequence[tuple[Workload, RawObject]], pods: list[PodInfo], looked_up: list[NamedObject]
    ) -> list[PodInfo]:
        """Return `pods` with those that are made, and add what goes with these to `looked_up`.

        Raises:
            ClusterFileError: a workload asks for more pods than a simulation makes.
        """
        if not workloads:
            return pods
        asking, raws = [each for each, _ in workloads], [raw for _, raw in workloads]
        owned = OwnedPods(asking, (info.pod for info in pods))
        added = {index for index, raw in enumerate(raws) if raw.where in self.added}
        changed = {index: self._first_step(*workloads[index], owned) for index in added}
        gone = {pod.metadata.uid for left in changed.values() for pod in left or ()}
        self.making_way = [info for info in pods if info.uid in gone]
        pods = [info for info in pods if info.uid not in gone]
        controllers = Controllers(asking, owned, self.nodes, self.most_pods)
        batches = _batches(workloads, controllers)
        claims = {key_of(each.metadata) for each in looked_up if isinstance(each, PersistentVolumeClaim)}
        for index, (workload, raw) in enumerate(workloads):
            batch = batches[index]
            if batch is None and index not in added:
                continue
            try:
                sample = batch or controllers.one_more(workload)
                made = [] if sample is None else list(made_pods(sample, self.admission, are_added=index in added))
            except (AdmissionError, QuantityError) as error:
                self.skip(raw, f"{template_of(workload)[0]}.{error}", 0 if batch is None else len(batch.members))
                continue
            if index in added:
                self.added[raw.where] = made
            if sample is None and not owned.of(workload_key(workload)):
                self.skip(raw, "no pod is made: no node has what it selects and lets it in by its taints", 0)
            if sample is None or not self._is_tried(workload, batch, changed.get(index)):
                continue
            pods.extend(made)
            if sample.replica_set is not None:
                looked_up.append(sample.replica_set)
            looked_up.extend(each for each in made_claims(sample) if key_of(each.metadata) not in claims)
        return pods

    def _first_step(self, workload: Workload, raw: RawObject, owned: OwnedPods) -> Sequence[Pod] | None:
        """Take out of `owned` who makes way for pods of a changed template, and return them; None of the same one."""
        key = workload_key(workload)
        there = owned.of(key)
        before = self.replaced.get(raw.where)
        if not (there or owned.has_run(key)) or not is_changed(workload, before, there, self.admission):
            return None
        leaving = making_way(workload, there)
        owned.leave(key, leaving)
        return leaving

    def _is_tried(self, workload: Workload, batch: PodBatch | None, left: Sequence[Pod] | None) -> bool:
        """Whether pods are tried of what is to be made, or of a changed template; notes what is not to be expected."""
        name = f"{type(workload).__name__} {key_of(workload.metadata)}"
        if batch is None and (left is None or is_held(workload)):
            self.notes.append(f"{name}: no pod is tried, as it makes no more; simulate --count 1 tries one")
            return False
        if left is not None:
            way = f" in the place of {left[0].metadata.name}" if left else ""
            self.notes.append(f"{name}: a pod of its changed template is tried{way}")
        return True


def _batches(workloads: Sequence[tuple[Workload, RawObject]], controllers: Controllers) -> dict[int, PodBatch | None]:
    """What is to be made of each, by its index. The names of a StatefulSet's pods are fixed: others make way."""
    batches = {}
    for index, (workload, raw) in sorted(
        enumerate(workloads), key=lambda each: not isinstance(each[1][0], StatefulSet)
    ):
        try:
            batches[index] = controllers.batch(workload)
        except AdmissionError as error:
            raise ClusterFileError(f"{title(raw)}: {error}") from None
    return batches


_MADE_LABELS: Final = frozenset(
    {
        *(POD_TEMPLATE_HASH, "controller-revision-hash", "controller-uid", "job-name", "apps.kubernetes.io/pod-index"),
        *("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "statefulset.kubernetes.io/pod-name"),
    }
)
"""Labels that controllers add to those of a template."""
_NONE: Final = (0, "0%")


def making_way(workload: Workload, there: Sequence[Pod]) -> Sequence[Pod]:
    """Return those of the pods `there` of a workload that leave before the first of a changed template comes.

    None do where pods are lacking, or a Deployment surges. Of a DaemonSet all do, since each node has one.
    """
    if isinstance(workload, DaemonSet):
        return there
    if isinstance(workload, Job | CronJob | PodTemplate) or (isinstance(workload, Deployment) and _surges(workload)):
        return ()
    wanted = 1 if workload.spec.replicas is None else workload.spec.replicas
    if not 0 < wanted <= len(there):
        return ()
    # A StatefulSet's pods are replaced from the last one.
    return sorted(there, key=lambda pod: (len(pod.metadata.name), pod.metadata.name))[wanted - 1 :]


def is_held(workload: Workload) -> bool:
    """Whether a workload asks for no pods at all."""
    if isinstance(workload, Job | CronJob):
        return workload.spec.suspend
    return not isinstance(workload, PodTemplate) and workload.spec.replicas == 0


def is_changed(workload: Workload, before: Workload | None, there: Sequence[Pod], admission: Admission) -> bool:
    """Whether the template is another than `before`, or than that of the pods `there`, by what decisions read.

    Of a template that the API server would refuse it is said that it is another, and of a CronJob of which nothing but
    runs is known.
    """
    if before is None and not there:
        return isinstance(workload, CronJob)
    old = _of_template(before) if before is not None else there[0]
    # As if it were new: the API server gave it what it gives all pods.
    old = structs.replace(old, metadata=structs.replace(old.metadata, resource_version=""))
    try:
        one, other = (_read(admission.pod(each, is_added=True)) for each in (_of_template(workload), old))
    except (AdmissionError, QuantityError):
        return True
    return one != other


def _of_template(workload: Workload) -> Pod:
    template, meta = template_of(workload)[1], workload.metadata
    return Pod(ObjectMeta(meta.name, meta.namespace, labels=template.metadata.labels), template.spec)


def _surges(deployment: Deployment) -> bool:
    strategy = deployment.spec.strategy
    return strategy.type != "Recreate" and strategy.rolling_update.max_surge not in _NONE


def _read(pod: Pod) -> tuple[object, ...]:
    info, spec = PodInfo(pod), pod.spec
    labels = {key: value for key, value in (pod.metadata.labels or {}).items() if key not in _MADE_LABELS}
    images = [each.image for each in (*(spec.init_containers or ()), *spec.containers)]
    # Quantities are written in several ways, and what is said of a volume may be no more than its name.
    volumes = [each for each in spec.volumes or () if each != Volume(name=each.name)]
    rules = spec.node_selector or {}, spec.affinity, spec.topology_spread_constraints or [], spec.scheduling_gates or []
    numbers = info.requests, info.host_ports, info.priority
    return labels, images, volumes, rules, numbers, frozenset(spec.tolerations or ())
