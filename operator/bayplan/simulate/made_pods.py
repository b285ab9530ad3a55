"""The pods of a batch as the API server would have admitted them."""

from collections.abc import Iterator

from msgspec import structs

from bayplan.api.meta_objects import ObjectMeta
from bayplan.api.objects import PersistentVolumeClaimSource, Pod, PodSpec, Volume
from bayplan.api.storage_objects import PersistentVolumeClaim, StorageMeta
from bayplan.cache.pod_info import PodInfo
from bayplan.simulate.admission import Admission
from bayplan.simulate.daemon_pods import kept_to
from bayplan.simulate.pod_batches import Member, PodBatch


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
