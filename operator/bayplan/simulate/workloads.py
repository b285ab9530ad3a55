"""Objects whose controllers make pods, as files have them: cut to what decides which pods those are."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from bayplan.api.meta_objects import LabelSelector, ObjectMeta, Struct
from bayplan.api.objects import PodCondition, PodSpec
from bayplan.api.selectors import compile_label_selector
from bayplan.api.storage_objects import PersistentVolumeClaim
from bayplan.simulate.admission_policies import DEFAULT_NAMESPACE
from bayplan.simulate.refusals import AdmissionError, check_name, check_schedule

_APPS: Final = "apps/v1"
_BATCH: Final = "batch/v1"


class PodTemplateSpec(Struct, frozen=True):
    """What the pods of a workload are made from."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class RollingUpdate(Struct, frozen=True):
    """How many pods a Deployment has more than it asks for while it replaces them: a number, or a share in percent."""

    max_surge: int | str | None = None


class Strategy(Struct, frozen=True):
    """How a Deployment replaces its pods."""

    type: str = ""
    rolling_update: RollingUpdate = RollingUpdate()


class ReplicatedSpec(Struct, frozen=True):
    """The spec of a Deployment, a ReplicaSet and a DaemonSet, which has no `replicas`."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    strategy: Strategy = Strategy()


class Ordinals(Struct, frozen=True):
    """Where a StatefulSet begins to count."""

    start: int = 0


class StatefulSetSpec(ReplicatedSpec, frozen=True):
    """The spec of a StatefulSet."""

    ordinals: Ordinals = Ordinals()
    volume_claim_templates: list[PersistentVolumeClaim] | None = None


class ReplicationControllerSpec(Struct, frozen=True):
    """The spec of a ReplicationController, which selects by labels alone."""

    replicas: int | None = None
    selector: dict[str, str] | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class JobSpec(Struct, frozen=True):
    """The spec of a Job."""

    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str | None = None
    suspend: bool = False
    template: PodTemplateSpec = PodTemplateSpec()


class JobStatus(Struct, frozen=True):
    """How far a Job is."""

    succeeded: int = 0
    completed_indexes: str = ""
    conditions: list[PodCondition] | None = None


class JobTemplateSpec(Struct, frozen=True):
    """What the Jobs of a CronJob are made from."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


class CronJobSpec(Struct, frozen=True):
    """The spec of a CronJob."""

    schedule: str = ""
    suspend: bool = False
    job_template: JobTemplateSpec = JobTemplateSpec()


class _Replicated(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicatedSpec = ReplicatedSpec()


class Deployment(_Replicated, frozen=True):
    """An apps/v1 Deployment."""


class ReplicaSet(_Replicated, frozen=True):
    """An apps/v1 ReplicaSet."""


class ReplicationController(Struct, frozen=True):
    """A v1 ReplicationController."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class StatefulSet(Struct, frozen=True):
    """An apps/v1 StatefulSet."""

    metadata: ObjectMeta = ObjectMeta()
    spec: StatefulSetSpec = StatefulSetSpec()


class DaemonSet(_Replicated, frozen=True):
    """An apps/v1 DaemonSet."""


class Job(Struct, frozen=True):
    """A batch/v1 Job."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class CronJob(Struct, frozen=True):
    """A batch/v1 CronJob."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CronJobSpec = CronJobSpec()


class PodTemplate(Struct, frozen=True):
    """A v1 PodTemplate; no controller makes pods of it, a simulation tries one."""

    metadata: ObjectMeta = ObjectMeta()
    template: PodTemplateSpec = PodTemplateSpec()


Workload = Deployment | ReplicaSet | ReplicationController | StatefulSet | DaemonSet | Job | CronJob | PodTemplate

WORKLOADS: Final[Mapping[tuple[str, str], type[Workload]]] = {
    (_APPS, "Deployment"): Deployment,
    (_APPS, "ReplicaSet"): ReplicaSet,
    (_APPS, "StatefulSet"): StatefulSet,
    (_APPS, "DaemonSet"): DaemonSet,
    (_BATCH, "Job"): Job,
    (_BATCH, "CronJob"): CronJob,
    ("v1", "ReplicationController"): ReplicationController,
    ("v1", "PodTemplate"): PodTemplate,
}
"""By apiVersion and kind."""
API_VERSIONS: Final[Mapping[type, str]] = {kind: version for (version, _), kind in WORKLOADS.items()}


def completed(workload: Workload) -> Workload:
    """Return the workload as the API server would store it: with a namespace and a uid.

    Raises:
        AdmissionError: the API server would refuse it.
    """
    meta = workload.metadata
    check_name(meta.name)
    namespace = meta.namespace or DEFAULT_NAMESPACE
    check_name(namespace, "metadata.namespace")
    path, template = template_of(workload)
    if not template.spec.containers:
        raise AdmissionError(f"{path}.spec.containers: Required value")
    _CHECKS[type(workload)](workload)
    uid = meta.uid or f"file:{type(workload).__name__}/{namespace}/{meta.name}"
    return msgspec.structs.replace(workload, metadata=msgspec.structs.replace(meta, namespace=namespace, uid=uid))


def template_of(workload: Workload) -> tuple[str, PodTemplateSpec]:
    """The path of the pod template in the object, and the template."""
    if isinstance(workload, PodTemplate):
        return "template", workload.template
    if isinstance(workload, CronJob):
        return "spec.jobTemplate.spec.template", workload.spec.job_template.spec.template
    return "spec.template", workload.spec.template


def _check_replicated(workload: Any) -> None:  # noqa: ANN401 - one of those with such a spec
    spec: ReplicatedSpec = workload.spec
    _check_count(spec.replicas, "spec.replicas")
    if spec.selector is None:
        raise AdmissionError("spec.selector: Required value")
    matcher = compile_label_selector(spec.selector)
    if matcher.error:
        raise AdmissionError(f"spec.selector: {matcher.error}")
    _check_selected(matches=matcher.matches(spec.template.metadata.labels))


def _check_replication_controller(workload: ReplicationController) -> None:
    spec = workload.spec
    _check_count(spec.replicas, "spec.replicas")
    labels = spec.template.metadata.labels or {}
    # Without a selector the API server takes the labels of the template for it.
    _check_selected(matches=bool(labels) and (spec.selector or labels).items() <= labels.items())


def _check_selected(*, matches: bool) -> None:
    if not matches:
        raise AdmissionError("spec.template.metadata.labels: selector does not match template labels")


def _check_stateful_set(workload: StatefulSet) -> None:
    _check_replicated(workload)
    _check_count(workload.spec.ordinals.start, "spec.ordinals.start")
    for index, claim in enumerate(workload.spec.volume_claim_templates or ()):
        check_name(claim.metadata.name, f"spec.volumeClaimTemplates[{index}].metadata.name")


def _check_job_spec(spec: JobSpec, path: str = "spec") -> None:
    _check_count(spec.parallelism, f"{path}.parallelism")
    _check_count(spec.completions, f"{path}.completions")
    # Without both the API server gives one of each.
    if spec.completion_mode == "Indexed" and spec.completions is None and spec.parallelism is not None:
        raise AdmissionError(f"{path}.completions: Required value: when completion mode is Indexed")


def _check_cron_job(cron: CronJob) -> None:
    check_schedule(cron.spec.schedule)
    _check_job_spec(cron.spec.job_template.spec, "spec.jobTemplate.spec")


def _check_count(count: int | None, path: str) -> None:
    if count is not None and count < 0:
        raise AdmissionError(f"{path}: Invalid value: {count}: must be greater than or equal to 0")


_CHECKS: Final[Mapping[type, Callable[[Any], None]]] = {
    Deployment: _check_replicated,
    ReplicaSet: _check_replicated,
    DaemonSet: _check_replicated,
    StatefulSet: _check_stateful_set,
    ReplicationController: _check_replication_controller,
    Job: lambda job: _check_job_spec(job.spec),
    CronJob: _check_cron_job,
    PodTemplate: lambda _: None,
}
