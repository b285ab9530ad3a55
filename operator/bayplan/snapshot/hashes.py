"""Keyed hashes in place of names in a redacted snapshot, also in the names that controllers make of these."""

import hmac
import re
from base64 import b32encode
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, TypeVar

from msgspec import structs

from bayplan.api.meta_objects import ObjectMeta, controller_of
from bayplan.api.objects import Pod, Taint, Toleration
from bayplan.api.selectors import is_label_key, is_label_value
from bayplan.api.storage_objects import PersistentVolumeClaim
from bayplan.plugins.image_locality import normalized_image_name
from bayplan.plugins.volumes.csi_migration import (
    BETA_REGION,
    BETA_ZONE,
    DRIVERS,
    REGION,
    UNCOUNTED_DRIVERS,
    ZONE,
    ZONE_LABELS,
    ZONE_SEPARATOR,
)
from bayplan.replay.trace import StrictTaint, StrictToleration
from bayplan.simulate.admission_policies import SERVERS_NAMESPACES, SYSTEM_CLASSES
from bayplan.simulate.workloads import StatefulSet

_Keyed = TypeVar("_Keyed", Taint, Toleration, StrictTaint, StrictToleration)

_LENGTH: Final = 16
"""Characters of a hash, of five bits each: of a million texts two are as good as never alike."""
_SHORT: Final = 8
"""Characters for a part of a zone's name, which with its other parts has to be a label's value."""
_NO_LABEL: Final = "!"
"""What makes a text no label, so that what was none stays none."""
_KEPT_NAMES: Final = SERVERS_NAMESPACES.union(SYSTEM_CLASSES)
"""Names that every cluster has."""
_KEPT_DOMAINS: Final = frozenset(
    {
        "kubernetes.io",
        "app.kubernetes.io",
        "apps.kubernetes.io",
        "batch.kubernetes.io",
        "beta.kubernetes.io",
        "failure-domain.beta.kubernetes.io",
        "node.cloudprovider.kubernetes.io",
        "node.kubernetes.io",
        "statefulset.kubernetes.io",
        "topology.kubernetes.io",
    }
)
"""Keys of these are Kubernetes' own; whoever made up a domain told something by it."""
_KEPT_KEYS: Final = frozenset({"pod-template-hash", "controller-revision-hash", *ZONE_LABELS.values()})
_KEPT_VALUES_OF: Final = frozenset({"batch.kubernetes.io/job-completion-index"})
_NAME_KEY: Final = "kubernetes.io/metadata.name"
"""The label of namespaces that has their names."""
_ZONE_KEYS: Final = frozenset({ZONE, REGION, BETA_ZONE, BETA_REGION, *ZONE_LABELS.values()})
_KEPT_DRIVERS: Final = frozenset({*DRIVERS, *UNCOUNTED_DRIVERS, *DRIVERS.values(), *UNCOUNTED_DRIVERS.values()})
_PROVISIONERS: Final = "kubernetes.io/"
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_AWS_DISK: Final = re.compile(r"(?:aws://[^/]*/+)?(vol-[^/]*)/*")
_AWS: Final = "aws://"
_GCE_DISK: Final = re.compile(r"projects/([^/]*)/(zones|regions)/([^/]*)/disks/(.*)", re.DOTALL)
_UNSPECIFIED: Final = "UNSPECIFIED"

_NUMBERED: Final = re.compile(r"(.+)-([0-9]+)", re.DOTALL)


class Hashes:
    """Replaces texts of all kinds; who has not the key cannot tell what they were.

    What decisions do with a text beside comparing it whole still comes out the same: zones of regional volumes, what
    CSI drivers make of disks, tags of images, numbers that are compared. `numbers` are label keys whose values are
    compared as integers: these stay. `kept` are label keys that stay with their values.
    """

    def __init__(self, key: bytes, *, numbers: Collection[str] = (), kept: Collection[str] = ()) -> None:
        self._key = key
        self._numbers = frozenset(numbers)
        self._kept = frozenset(kept)
        self._known: dict[str, str] = {"": ""}

    def text(self, text: str) -> str:
        """The hash of any text; nothing stays nothing."""
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._digest(text)[:_LENGTH]
        return known

    def name(self, text: str) -> str:
        """The hash of an object's name; names that every cluster has stay."""
        return text if text in _KEPT_NAMES else self.text(text)

    def label_key(self, key: str) -> str:
        """The hash of a label's or taint's key; Kubernetes' own stay."""
        if key in _KEPT_KEYS or key in self._kept or key.partition("/")[0] in _KEPT_DOMAINS:
            return key
        return self.text(key) if not key or is_label_key(key) else self.text(key) + _NO_LABEL

    def label_value(self, key: str, value: str) -> str:
        """The hash of a label's or taint's value under a key."""
        if key in self._kept or key in _KEPT_VALUES_OF or (key in self._numbers and _INTEGER.fullmatch(value)):
            return value
        if key in _ZONE_KEYS:
            # A regional volume is labelled with several.
            return ZONE_SEPARATOR.join(map(self._zone, value.split(ZONE_SEPARATOR)))
        if key == _NAME_KEY:
            return self.name(value)
        return self.text(value) if is_label_value(value) else self.text(value) + _NO_LABEL

    def labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Return labels, or a selector's, with both hashed."""
        return {self.label_key(key): self.label_value(key, value) for key, value in labels.items()}

    def keyed(self, each: _Keyed) -> _Keyed:
        """Return a taint or a toleration with key and value hashed as those of labels."""
        return structs.replace(each, key=self.label_key(each.key), value=self.label_value(each.key, each.value))

    def driver(self, name: str) -> str:
        """The hash of a CSI driver's or provisioner's name; in-tree ones and their successors stay."""
        return name if name in _KEPT_DRIVERS or name.startswith(_PROVISIONERS) else self.text(name)

    def disk(self, handle: str) -> str:
        """The hash of what identifies a disk, of a form that its driver understands if it was of one."""
        prefix = f"{_AWS}zone/" if handle.startswith(_AWS) else ""
        if (aws := _AWS_DISK.fullmatch(handle)) is not None:
            return f"{prefix}vol-{self.text(aws[1])}"
        if (gce := _GCE_DISK.fullmatch(handle)) is not None:
            project, place = (each if each == _UNSPECIFIED else "" for each in (gce[1], gce[3]))
            return (
                f"projects/{project or self.text(gce[1])}/{gce[2]}/{place or self._zone(gce[3])}/disks/"
                f"{self.text(gce[4])}"
            )
        return prefix + self.text(handle)

    def image(self, name: str) -> str:
        """The hash of an image's name as a node lists it."""
        return f"{self.text(name)}:0" if name else ""

    def wanted_image(self, name: str) -> str:
        """The hash of an image's name as a pod asks for it, where a tag may be missing."""
        return self.image(normalized_image_name(name)) if name else ""

    def _zone(self, zone: str) -> str:
        """Part by part: a region is what zones begin with."""
        if not is_label_value(zone):
            return self.text(zone) + _NO_LABEL
        joined = "-".join(self._digest(part)[:_SHORT] if part else "" for part in zone.split("-"))
        return joined if is_label_value(joined) else self.text(zone)

    def _digest(self, text: str) -> str:
        digest = hmac.digest(self._key, text.encode("utf-8", "surrogatepass"), "sha256")
        return b32encode(digest).decode().lower().rstrip("=")


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
        owner = controller_of(meta)
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
