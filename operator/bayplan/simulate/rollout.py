"""The first step of a rollout: what a controller does where all pods of a workload are there, of another template."""

from collections.abc import Sequence
from typing import Final

from msgspec import structs

from bayplan.api.meta_objects import ObjectMeta
from bayplan.api.objects import Pod, Volume
from bayplan.api.quantity import QuantityError
from bayplan.cache.pod_info import PodInfo
from bayplan.simulate.admission import Admission
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
