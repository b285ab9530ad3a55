"""Workloads changed to ask for one pod more than there are, to learn what their pods are like."""

from msgspec import structs

from bayplan.simulate.workloads import CronJob, DaemonSet, Job, JobSpec, JobStatus, PodTemplate, Workload


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
