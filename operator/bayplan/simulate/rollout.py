"""The first step of a rollout: what a controller does where all pods of a workload are there, of another template."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import structs

from bayplan.api.meta_objects import ObjectMeta
from bayplan.api.objects import Pod, Volume
from bayplan.api.quantity import QuantityError
from bayplan.cache.pod_info import PodInfo
from bayplan.simulate.admission import Admission
from bayplan.simulate.controllers import Controllers
from bayplan.simulate.one_more import asking_for_one_more
from bayplan.simulate.pod_batches import POD_TEMPLATE_HASH
from bayplan.simulate.refusals import AdmissionError
from bayplan.simulate.workloads import CronJob, DaemonSet, Deployment, Job, PodTemplate, Workload, template_of

_MADE_LABELS: Final = frozenset(
    {
        *(POD_TEMPLATE_HASH, "controller-revision-hash", "controller-uid", "job-name", "apps.kubernetes.io/pod-index"),
        *("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "statefulset.kubernetes.io/pod-name"),
    }
)
"""Labels that controllers add to those of a template."""
_NONE: Final = (0, "0%")


def rolled_out(
    workloads: Sequence[Workload],
    added: Mapping[int, Workload | None],
    pods: Sequence[PodInfo],
    admission: Admission,
    notes: list[str],
) -> tuple[list[Workload], set[str]]:
    """Return the workloads, of which those `added` with a changed template ask for a pod of it, and who makes way.

    `added` has the positions of workloads, with what was there before of the same name. Who makes way is the UIDs of
    pods. Each such workload is told of in `notes`.
    """
    asking = list(workloads)
    leaving: set[str] = set()
    if not added:
        return asking, leaving
    controllers = Controllers(workloads, (info.pod for info in pods), ())
    for index, before in added.items():
        workload = workloads[index]
        there = controllers.pods_of(workload)
        if not controllers.has_pods(workload) or not _is_changed(workload, before, there, admission):
            continue
        asking[index], gone = _first_step(workload, there)
        leaving.update(pod.metadata.uid for pod in gone)
        if asking[index] is not workload or gone:
            meta, way = workload.metadata, f" in the place of {gone[0].metadata.name}" if gone else ""
            name = f"{type(workload).__name__} {meta.namespace}/{meta.name}"
            notes.append(f"{name}: a pod of its changed template is tried{way}, as all its pods are there")
    return asking, leaving


def _first_step(workload: Workload, there: Sequence[Pod]) -> tuple[Workload, Sequence[Pod]]:
    """Return the workload as it asks for the first pod of a new template, and those of `there` that leave before.

    A Deployment that surges asks for one pod more; of other workloads an old pod leaves first, and of a DaemonSet all
    do, since each node has one. A CronJob has its next run made. What has fewer pods than it asks for, or asks for
    none, is returned as it is.
    """
    match workload:
        case CronJob():
            run = structs.replace(workload.metadata, name=f"{workload.metadata.name}-1")
            return (workload if workload.spec.suspend else Job(run, workload.spec.job_template.spec)), ()
        case DaemonSet():
            return workload, there
        case Job():
            is_full = not workload.spec.suspend and (workload.spec.parallelism or 1) <= len(there)
            return (asking_for_one_more(workload, len(there)) if is_full else workload), ()
        case PodTemplate():
            return workload, ()
    wanted = 1 if workload.spec.replicas is None else workload.spec.replicas
    if not 0 < wanted <= len(there):
        return workload, ()
    kept = wanted if isinstance(workload, Deployment) and _surges(workload) else wanted - 1
    # A StatefulSet's pods are replaced from the last one.
    in_order = sorted(there, key=lambda pod: (len(pod.metadata.name), pod.metadata.name))
    return asking_for_one_more(workload, kept), in_order[kept:]


def _is_changed(workload: Workload, before: Workload | None, there: Sequence[Pod], admission: Admission) -> bool:
    """Whether the template is another than before, or than that of the pods which are there, by what decisions read.

    Of a template that the API server would refuse it is said that it is another.
    """
    if before is None and not there:
        # A snapshot has the Jobs of CronJobs, and not these.
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
    _, template = template_of(workload)
    meta = workload.metadata
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
    tolerations = frozenset(spec.tolerations or ())
    return labels, info.requests, info.host_ports, info.priority, images, volumes, tolerations, rules
