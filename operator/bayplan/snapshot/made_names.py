"""Names that controllers make of other names, which a redacted snapshot makes of the hashes of these."""

import re
from collections.abc import Iterable
from typing import Any, Final

from bayplan.api.meta_objects import ObjectMeta
from bayplan.api.objects import Pod
from bayplan.api.storage_objects import PersistentVolumeClaim
from bayplan.simulate.workloads import StatefulSet
from bayplan.snapshot.hashes import Hashes

_NUMBERED: Final = re.compile(r"(.+)-([0-9]+)", re.DOTALL)


class MadeNames:
    """The pods of StatefulSets, their claims, and the claims of ephemeral volumes, among `objects`.

    Simulations work such names out, to know which pods and claims are there: a pod `db-0` of the StatefulSet `db` is
    called after the hash of `db`, and keeps its number.
    """

    def __init__(self, objects: Iterable[Any], hashes: Hashes) -> None:
        self._hashes = hashes
        self._pods: dict[tuple[str, str], str] = {}
        self._claims: dict[tuple[str, str], str] = {}
        templates: dict[tuple[str, str], str] = {}
        claims: list[PersistentVolumeClaim] = []
        pods: list[Pod] = []
        for obj in objects:
            if isinstance(obj, Pod):
                self._take_pod(obj)
                pods.append(obj)
            elif isinstance(obj, StatefulSet):
                meta = obj.metadata
                for claim in obj.spec.volume_claim_templates or ():
                    hashed = f"{hashes.name(claim.metadata.name)}-{hashes.name(meta.name)}"
                    templates[meta.namespace, f"{claim.metadata.name}-{meta.name}"] = hashed
            elif isinstance(obj, PersistentVolumeClaim):
                claims.append(obj)
        for claim in claims:
            self._take_claim(claim.metadata, templates)
        for pod in pods:
            self._take_ephemeral(pod)

    def pod(self, namespace: str, name: str) -> str:
        """What a pod is called."""
        return self._pods.get((namespace, name)) or self._hashes.name(name)

    def claim(self, namespace: str, name: str) -> str:
        """What a claim is called."""
        return self._claims.get((namespace, name)) or self._hashes.name(name)

    def _take_pod(self, pod: Pod) -> None:
        meta = pod.metadata
        numbered = _NUMBERED.fullmatch(meta.name)
        owner = next((each for each in meta.owner_references or () if each.controller), None)
        if numbered is not None and owner is not None and (owner.kind, owner.name) == ("StatefulSet", numbered[1]):
            self._pods[meta.namespace, meta.name] = f"{self._hashes.name(owner.name)}-{numbered[2]}"

    def _take_claim(self, meta: ObjectMeta, templates: dict[tuple[str, str], str]) -> None:
        numbered = _NUMBERED.fullmatch(meta.name)
        if numbered is not None and (made := templates.get((meta.namespace, numbered[1]))) is not None:
            self._claims[meta.namespace, meta.name] = f"{made}-{numbered[2]}"

    def _take_ephemeral(self, pod: Pod) -> None:
        meta = pod.metadata
        for volume in pod.spec.volumes or ():
            if volume.ephemeral is not None:
                made = f"{self.pod(meta.namespace, meta.name)}-{self._hashes.name(volume.name)}"
                self._claims[meta.namespace, f"{meta.name}-{volume.name}"] = made
