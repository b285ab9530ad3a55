"""What a scheduler writes on the status of a pod that it could not place, as the API server would store it."""

from typing import Final

from msgspec import structs

from bayplan.api.objects import Pod, PodCondition
from bayplan.cache.pod_info import PodInfo
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.api_calls import condition_message

_POD_SCHEDULED: Final = "PodScheduled"


def write_status(
    queue: SchedulingQueue, pod: PodInfo, nomination: str | None, condition: tuple[str, str] | None = None
) -> None:
    """Hand a pod back to the queue as it is once `bayplan run` has written this on it; see `with_status`."""
    held = None if nomination is None and condition is None else queue.newest(pod.uid)
    if held is not None:
        written = with_status(held.pod, nomination, condition)
        if written is not held.pod:
            newest = PodInfo(written)
            newest.take_over(held)
            queue.update(newest)


def with_status(pod: Pod, nomination: str | None, condition: tuple[str, str] | None = None) -> Pod:
    """Return the pod with what is written on it; the same object if it says all of that already.

    `nomination` is a node's name, "" for none, or None to leave it; `condition` is the reason and the message of
    PodScheduled=False. The new version has no resourceVersion, so that it is known to be another one.
    """
    status = pod.status
    if nomination is not None and nomination != status.nominated_node_name:
        status = structs.replace(status, nominated_node_name=nomination)
    if condition is not None:
        new = PodCondition(_POD_SCHEDULED, "False", condition[0], condition_message(condition[1]))
        held = status.conditions
        if not held:
            status = structs.replace(status, conditions=[new])
        elif not any(_says(each) == _says(new) for each in held):
            others = [each for each in held if each.type != _POD_SCHEDULED]
            status = structs.replace(status, conditions=[*others, new])
    if status is pod.status:
        return pod
    metadata = pod.metadata
    if metadata.resource_version:
        metadata = structs.replace(metadata, resource_version="")
    return Pod(metadata, pod.spec, status)


def _says(condition: PodCondition) -> tuple[str, str, str, str]:
    return condition.type, condition.status, condition.reason, condition.message
