"""Of which pods copies can be counted."""

from collections.abc import Sequence

from bayplan.api.meta_objects import OwnerReference
from bayplan.cache.pod_info import PodInfo


class NotCountedError(ValueError):
    """Raised where copies of a pod would not be alike; the text says why, and what to ask instead."""


def counted_pod(pods: Sequence[PodInfo]) -> PodInfo:
    """Return the one of `pods`, of which there is at least one, that stands for all; who counts copies relies on it.

    Raises:
        NotCountedError: they are not those of one workload, or their workload makes no two that are alike.
    """
    pod = pods[0]
    owner = _owner(pod)
    if len(pods) > 1 and (owner is None or any(_key(_owner(each)) != _key(owner) for each in pods)):
        raise NotCountedError("is of one pod, or of the pods of one workload")
    if owner is not None and owner.kind == "DaemonSet":
        raise NotCountedError("a DaemonSet has one pod on each node; without a count it is said which of them fit")
    claims = [volume.persistent_volume_claim for volume in pod.pod.spec.volumes or ()]
    own = any(each is not None and each.claim_name.endswith(f"-{pod.name}") for each in claims)
    if owner is not None and owner.kind == "StatefulSet" and own:
        raise NotCountedError(
            "each pod of a StatefulSet has claims of its own; ask without a count, with as many replicas"
        )
    return pod


def _owner(pod: PodInfo) -> OwnerReference | None:
    return next(iter(pod.pod.metadata.owner_references or ()), None)


def _key(owner: OwnerReference | None) -> str | None:
    return None if owner is None else owner.uid or owner.name
