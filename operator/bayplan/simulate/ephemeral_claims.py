"""The claims that the ephemeral volume controller makes for pods."""

from collections.abc import Iterable
from contextlib import suppress
from typing import cast

from msgspec import structs

from bayplan.api.errors import DECODE_ERRORS
from bayplan.api.kinds import resource_of
from bayplan.api.meta_objects import OwnerReference
from bayplan.api.storage_objects import PersistentVolumeClaim
from bayplan.cache.listers import Listers
from bayplan.cache.pod_info import PodInfo
from bayplan.plugins.volumes.claims import claim_reference
from bayplan.simulate.documents import Decoder
from bayplan.simulate.looked_up import looked_up
from bayplan.simulate.refusals import AdmissionError

_CLAIM = Decoder(PersistentVolumeClaim)


def make_claims(listers: Listers, pods: Iterable[PodInfo]) -> None:
    """Make the claims of the templates in the volumes of pods, as the API server stores them; those there are stay.

    None is made of a template that the API server would refuse, nor of one that a snapshot left out. Upstream:
    pkg/controller/volume/ephemeral/controller.go handleVolume.
    """
    claims, resource = listers.of(PersistentVolumeClaim), resource_of(PersistentVolumeClaim)
    for info in pods:
        for volume in info.pod.spec.volumes or ():
            reference, template = claim_reference(info.pod, volume), (volume.ephemeral or {}).get("volumeClaimTemplate")
            if reference is None or template is None or claims.get(f"{info.namespace}/{reference.name}") is not None:
                continue
            with suppress(AdmissionError, *DECODE_ERRORS):
                claim = _CLAIM(template)
                owner = OwnerReference("v1", "Pod", info.name, info.uid, controller=True)
                meta = structs.replace(
                    claim.metadata, name=reference.name, namespace=info.namespace, owner_references=[owner]
                )
                claims.set(cast("PersistentVolumeClaim", looked_up(structs.replace(claim, metadata=meta), resource)))
