"""The pods that a controller is to make of one template."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
from msgspec import structs

from bayplan.api.meta_objects import LabelSelector, ObjectMeta, OwnerReference
from bayplan.api.storage_objects import PersistentVolumeClaim
from bayplan.api.workload_objects import ReplicaSet, WorkloadSpec
from bayplan.simulate.workloads import API_VERSIONS, PodTemplateSpec, Workload, template_of
from bayplan.simulate.workloads import ReplicaSet as OwningReplicaSet

MAX_NAME: Final = 253
"""Longest name of a pod."""
POD_TEMPLATE_HASH: Final = "pod-template-hash"
"""The label that tells apart the pods of a Deployment's templates."""

_RANGE: Final = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_NO_LABELS: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class Member:
    """One pod that is to be made; `labels` are its own, beside those of the template."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    node: str = ""
    """The node that a DaemonSet makes it for."""


@dataclass(frozen=True, slots=True)
class PodBatch:
    """The pods that one controller makes of one template."""

    namespace: str
    path: str
    """Where the template stands in the workload."""
    template: PodTemplateSpec
    members: Sequence[Member]
    owner: OwnerReference | None = None
    claims: Sequence[PersistentVolumeClaim] = ()
    """Templates of claims that each pod has one of."""
    replica_set: ReplicaSet | None = None
    """The ReplicaSet that a Deployment makes for them."""


def reference(workload: Workload) -> OwnerReference:
    """Return how pods refer to the workload that controls them."""
    kind, meta = type(workload), workload.metadata
    return OwnerReference(API_VERSIONS[kind], kind.__name__, meta.name, meta.uid, controller=True)


def own_batch(
    workload: Workload,
    members: Sequence[Member],
    labels: Mapping[str, str] = _NO_LABELS,
    claims: Sequence[PersistentVolumeClaim] = (),
) -> PodBatch:
    """Return pods that belong to the workload itself; they have `labels` beside those of its template."""
    path, template = template_of(workload)
    namespace = workload.metadata.namespace
    return PodBatch(namespace, path, labelled(template, labels), members, reference(workload), claims)


def labelled(template: PodTemplateSpec, labels: Mapping[str, str]) -> PodTemplateSpec:
    """Return the template with more labels."""
    if not labels:
        return template
    meta = structs.replace(template.metadata, labels={**(template.metadata.labels or {}), **labels})
    return structs.replace(template, metadata=meta)


def digest(template: PodTemplateSpec) -> str:
    """Return a name for a template that is the same in every run; that of a cluster's controllers is another one."""
    return hashlib.sha256(msgspec.json.encode(template, order="deterministic")).hexdigest()[:10]


def without_hash(replica_set: OwningReplicaSet) -> PodTemplateSpec:
    """Return the template that the Deployment gave to its ReplicaSet."""
    template = replica_set.spec.template
    labels = {key: value for key, value in (template.metadata.labels or {}).items() if key != POD_TEMPLATE_HASH}
    return structs.replace(template, metadata=structs.replace(template.metadata, labels=labels or None))


def replica_set(
    name: str, uid: str, deployment: ObjectMeta, selector: LabelSelector | None, labels: Mapping[str, str]
) -> ReplicaSet:
    """Return the ReplicaSet that a Deployment makes, as plugins look it up."""
    wanted = selector or LabelSelector()
    own = structs.replace(wanted, match_labels={**(wanted.match_labels or {}), **labels})
    meta = ObjectMeta(name=name, namespace=deployment.namespace, uid=uid)
    return ReplicaSet(meta, WorkloadSpec(own))


def suffixed(name: str, number: int) -> str:
    """Return the name with a number, not longer than a name may be."""
    suffix = f"-{number}"
    return name[: MAX_NAME - len(suffix)] + suffix


def left_indexes(completions: int, completed: str) -> Iterator[int]:
    """Yield the indexes that a Job still has to complete, where it says `0,2-4` of those that it has."""
    ranges = [(int(m[1]), int(m[2] or m[1])) for m in map(_RANGE.fullmatch, completed.split(",")) if m is not None]
    next_index = 0
    for first, last in sorted(ranges):
        yield from range(next_index, min(first, completions))
        next_index = max(next_index, last + 1)
    yield from range(next_index, completions)
