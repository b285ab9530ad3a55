"""The pods that a controller is to make of one template, and these pods as the API server would have admitted them."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
from msgspec import structs

from bayplan.api.meta_objects import LabelSelector, ObjectMeta, OwnerReference
from bayplan.api.objects import (
    Affinity,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolumeClaimSource,
    Pod,
    PodSpec,
    Toleration,
    Volume,
)
from bayplan.api.selectors import compile_node_selector
from bayplan.api.storage_objects import PersistentVolumeClaim, StorageMeta
from bayplan.api.tolerations import Tolerance
from bayplan.api.workload_objects import ReplicaSet, WorkloadSpec
from bayplan.cache.pod_info import PodInfo
from bayplan.simulate.admission import Admission
from bayplan.simulate.refusals import MAX_NAME
from bayplan.simulate.workloads import API_VERSIONS, Deployment, PodTemplateSpec, Workload, template_of
from bayplan.simulate.workloads import ReplicaSet as OwningReplicaSet

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
    template = labelled(template_of(workload)[1], labels)
    return PodBatch(workload.metadata.namespace, template, members, reference(workload), claims)


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


def replica_set(deployment: Deployment, hashed: str) -> ReplicaSet:
    """Return the ReplicaSet that a Deployment makes, as plugins look it up."""
    namespace, name = deployment.metadata.namespace, f"{deployment.metadata.name}-{hashed}"
    wanted = deployment.spec.selector or LabelSelector()
    own = structs.replace(wanted, match_labels={**(wanted.match_labels or {}), POD_TEMPLATE_HASH: hashed})
    return ReplicaSet(
        ObjectMeta(name=name, namespace=namespace, uid=f"file:ReplicaSet/{namespace}/{name}"), WorkloadSpec(own)
    )


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


def made_pods(batch: PodBatch, admission: Admission, *, are_added: bool = False) -> Iterator[PodInfo]:
    """Yield the pods of the batch; what follows from the template is worked out once where all pods share it.

    Raises:
        AdmissionError: the API server would refuse them; the text names a field of the pod.
        QuantityError: a quantity of the template cannot be read.
    """
    shared: PodInfo | None = None
    for member in batch.members:
        if shared is not None and not member.labels and not batch.claims:
            pod = structs.replace(
                shared.pod,
                metadata=structs.replace(shared.pod.metadata, name=member.name, uid=_uid(batch, member)),
            )
            if member.node:
                pod = structs.replace(pod, spec=kept_to(pod.spec, member.node))
            info = PodInfo(pod)
            if not member.node:
                info.take_over(shared)
        else:
            info = PodInfo(admission.pod(_pod(batch, member), is_added=are_added))
            shared = info
        # Reading them here is what lets everything after this point trust the pod.
        _ = info.requests, info.placed
        yield info


def made_claims(batch: PodBatch) -> Iterator[PersistentVolumeClaim]:
    """Yield the claims that a StatefulSet makes for its pods.

    Upstream: controller/statefulset/stateful_set_utils.go getPersistentVolumeClaims.
    """
    for member in batch.members:
        for claim in batch.claims:
            meta = StorageMeta(name=_claim_name(claim, member), namespace=batch.namespace, labels=claim.metadata.labels)
            yield structs.replace(claim, metadata=meta)


def _pod(batch: PodBatch, member: Member) -> Pod:
    meta = ObjectMeta(
        name=member.name,
        namespace=batch.namespace,
        uid=_uid(batch, member),
        labels={**(batch.template.metadata.labels or {}), **member.labels},
        owner_references=None if batch.owner is None else [batch.owner],
    )
    return Pod(meta, _spec(batch, member))


def _spec(batch: PodBatch, member: Member) -> PodSpec:
    spec = batch.template.spec
    if member.node:
        # The scheduler puts it there, which needs no name of a node in the spec.
        return kept_to(structs.replace(spec, node_name=""), member.node)
    if not batch.claims:
        return spec
    own = {claim.metadata.name: _claim_name(claim, member) for claim in batch.claims}
    others = [each for each in spec.volumes or () if each.name not in own]
    made = [
        Volume(name=name, persistent_volume_claim=PersistentVolumeClaimSource(claim)) for name, claim in own.items()
    ]
    return structs.replace(spec, volumes=[*others, *made])


def _claim_name(claim: PersistentVolumeClaim, member: Member) -> str:
    return f"{claim.metadata.name}-{member.name}"


def _uid(batch: PodBatch, member: Member) -> str:
    # A StatefulSet's pod has the name of the one before it, which may still be there.
    return f"made:{batch.namespace}/{member.name}"


_NAME: Final = "metadata.name"
_TOLERATED: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
_TOLERATED_ON_HOSTS_NETWORK: Final = ("network-unavailable", "NoSchedule")


def with_tolerations(template: PodTemplateSpec) -> PodTemplateSpec:
    """Return the template with what every daemon puts up with (upstream: controller/daemon/util/daemonset_util.go)."""
    spec = template.spec
    taints = (*_TOLERATED, _TOLERATED_ON_HOSTS_NETWORK) if spec.host_network else _TOLERATED
    own = [Toleration(f"node.kubernetes.io/{name}", "Exists", effect=effect) for name, effect in taints]
    # Those that are about the same taint are replaced.
    same = {(each.key, each.operator, each.value, each.effect) for each in own}
    kept = [each for each in spec.tolerations or () if (each.key, each.operator, each.value, each.effect) not in same]
    return structs.replace(template, spec=structs.replace(spec, tolerations=[*kept, *own]))


def nodes_for(spec: PodSpec, nodes: Iterable[Node]) -> Sequence[str]:
    """The names of the nodes that a daemon of that spec is made for, whether or not it finds room there.

    Upstream: controller/daemon/daemon_controller.go NodeShouldRunDaemonPod.
    """
    wanted = (spec.node_selector or {}).items()
    required = spec.required_nodes
    matcher = None if required is None else compile_node_selector(required)
    tolerance = Tolerance(spec.tolerations)
    return [
        node.metadata.name
        for node in nodes
        if spec.node_name in ("", node.metadata.name)
        and wanted <= (node.metadata.labels or {}).items()
        and (matcher is None or matcher.matches(node.metadata.labels, node.metadata.name))
        and not tolerance.repelled_by(node.spec.taints)
    ]


def kept_to(spec: PodSpec, node: str) -> PodSpec:
    """Return the spec for one node: the name replaces the terms that the node was chosen by (upstream: as above)."""
    term = NodeSelectorTerm(match_fields=[NodeSelectorRequirement(_NAME, "In", [node])])
    affinity = spec.affinity or Affinity()
    on_nodes = structs.replace(
        affinity.node_affinity or NodeAffinity(),
        required_during_scheduling_ignored_during_execution=NodeSelector([term]),
    )
    return structs.replace(spec, affinity=structs.replace(affinity, node_affinity=on_nodes))


def node_of(pod: Pod) -> str:
    """The node that a DaemonSet's pod is on or was made for; "" if it does not say."""
    required = pod.spec.required_nodes
    if pod.spec.node_name or required is None:
        return pod.spec.node_name
    fields = (each for term in required.node_selector_terms or () for each in term.match_fields or ())
    return next((each.values[0] for each in fields if each.key == _NAME and each.values), "")
