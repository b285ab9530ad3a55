"""Objects whose controllers make pods, as files have them: cut to what decides which pods those are."""

from collections.abc import Mapping
from typing import Final

from msgspec import structs

from bayplan.api.meta_objects import Described, LabelSelector, Struct
from bayplan.api.objects import Condition, PodSpec
from bayplan.api.selectors import compile_label_selector
from bayplan.api.storage_objects import PersistentVolumeClaim
from bayplan.simulate.refusals import MAX_LABEL, AdmissionError, check_length, check_name, check_schedule, stored

_APPS: Final = "apps/v1"
_BATCH: Final = "batch/v1"
_COUNTS: Final = ("replicas", "parallelism", "completions")
_LONGEST_CRON_JOB: Final = 52


class PodTemplateSpec(Described, frozen=True):
    """What the pods of a workload are made from."""

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
    conditions: list[Condition] | None = None


class JobTemplateSpec(Described, frozen=True):
    """What the Jobs of a CronJob are made from."""

    spec: JobSpec = JobSpec()


class CronJobSpec(Struct, frozen=True):
    """The spec of a CronJob."""

    schedule: str = ""
    suspend: bool = False
    job_template: JobTemplateSpec = JobTemplateSpec()


class _Replicated(Described, frozen=True):
    spec: ReplicatedSpec = ReplicatedSpec()


class Deployment(_Replicated, frozen=True):
    """An apps/v1 Deployment."""


class ReplicaSet(_Replicated, frozen=True):
    """An apps/v1 ReplicaSet."""


class ReplicationController(Described, frozen=True):
    """A v1 ReplicationController."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class StatefulSet(Described, frozen=True):
    """An apps/v1 StatefulSet."""

    spec: StatefulSetSpec = StatefulSetSpec()


class DaemonSet(_Replicated, frozen=True):
    """An apps/v1 DaemonSet."""


class Job(Described, frozen=True):
    """A batch/v1 Job."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class CronJob(Described, frozen=True):
    """A batch/v1 CronJob."""

    spec: CronJobSpec = CronJobSpec()


class PodTemplate(Described, frozen=True):
    """A v1 PodTemplate; no controller makes pods of it, a simulation tries one."""

    template: PodTemplateSpec = PodTemplateSpec()


class ScaleTarget(Struct, frozen=True):
    """What an autoscaler scales, which is in its namespace."""

    kind: str = ""
    name: str = ""


class AutoscalerSpec(Struct, frozen=True):
    """The spec of a HorizontalPodAutoscaler."""

    scale_target_ref: ScaleTarget = ScaleTarget()
    min_replicas: int | None = None


class Autoscaler(Described, frozen=True):
    """An autoscaling HorizontalPodAutoscaler, which has a workload run `min_replicas` pods at least."""

    spec: AutoscalerSpec = AutoscalerSpec()


AUTOSCALERS: Final = frozenset(
    {("autoscaling/v1", "HorizontalPodAutoscaler"), ("autoscaling/v2", "HorizontalPodAutoscaler")}
)

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
    meta = stored(workload.metadata, f"{type(workload).__name__}/", is_label=isinstance(workload, StatefulSet))
    path, template = template_of(workload)
    if not template.spec.containers:
        raise AdmissionError(f"{path}.spec.containers: Required value")
    _check(workload)
    return structs.replace(workload, metadata=meta)


def template_of(workload: Workload) -> tuple[str, PodTemplateSpec]:
    """The path of the pod template in the object, and the template."""
    if isinstance(workload, PodTemplate):
        return "template", workload.template
    if isinstance(workload, CronJob):
        return "spec.jobTemplate.spec.template", workload.spec.job_template.spec.template
    return "spec.template", workload.spec.template


def autoscaled(workload: Workload, least: int) -> Workload:
    """Return the workload with `least` replicas if it has fewer; one that has none is left alone, as by autoscalers."""
    spec = getattr(workload, "spec", None)
    replicas = getattr(spec, "replicas", 0)
    if spec is None or replicas == 0 or (replicas or 1) >= least:
        return workload
    return structs.replace(workload, spec=structs.replace(spec, replicas=least))


def asking_for_one_more(workload: Workload, there: int) -> Workload:
    """Return the workload as it would ask for at least one pod more than the `there` it has, were it not done or held.

    A DaemonSet, which has no number, and a PodTemplate are returned as they are.
    """
    match workload:
        case Job():
            return structs.replace(workload, spec=_running(workload.spec, there), status=JobStatus())
        case CronJob():
            template = workload.spec.job_template
            template = structs.replace(template, spec=_running(template.spec, there))
            return structs.replace(workload, spec=structs.replace(workload.spec, job_template=template))
        case DaemonSet() | PodTemplate():
            return workload
    return structs.replace(workload, spec=structs.replace(workload.spec, replicas=there + 1))


def _running(spec: JobSpec, there: int) -> JobSpec:
    return structs.replace(spec, suspend=False, parallelism=there + 1, completions=None, completion_mode=None)


def _check(workload: Workload) -> None:
    path, spec = "spec", getattr(workload, "spec", None)
    if isinstance(workload, CronJob):
        path, spec = "spec.jobTemplate.spec", workload.spec.job_template.spec
        check_schedule(workload.spec.schedule)
        check_length(workload.metadata.name, _LONGEST_CRON_JOB)
    if isinstance(workload, Job):
        # The name is a label of its pods.
        check_length(workload.metadata.name, MAX_LABEL)
    counts = {name: getattr(spec, name, None) for name in _COUNTS}
    if isinstance(spec, StatefulSetSpec):
        counts["ordinals.start"] = spec.ordinals.start
        for index, claim in enumerate(spec.volume_claim_templates or ()):
            check_name(claim.metadata.name, f"spec.volumeClaimTemplates[{index}].metadata.name")
    for name, count in counts.items():
        if count is not None and count < 0:
            raise AdmissionError(f"{path}.{name}: Invalid value: {count}: must be greater than or equal to 0")
    # Without both the API server gives one of each.
    if isinstance(spec, JobSpec) and spec.completion_mode == "Indexed" and spec.completions is None:
        if spec.parallelism is not None:
            raise AdmissionError(f"{path}.completions: Required value: when completion mode is Indexed")
    elif isinstance(spec, ReplicationControllerSpec | ReplicatedSpec):
        _check_selector(spec)


def _check_selector(spec: ReplicatedSpec | ReplicationControllerSpec) -> None:
    labels = spec.template.metadata.labels or {}
    if isinstance(spec, ReplicationControllerSpec):
        # Without a selector the API server takes the labels of the template for it.
        matches = bool(labels) and (spec.selector or labels).items() <= labels.items()
    elif spec.selector is None:
        raise AdmissionError("spec.selector: Required value")
    else:
        matcher = compile_label_selector(spec.selector)
        if matcher.error:
            raise AdmissionError(f"spec.selector: {matcher.error}")
        matches = matcher.matches(labels)
    if not matches:
        raise AdmissionError("spec.template.metadata.labels: selector does not match template labels")
