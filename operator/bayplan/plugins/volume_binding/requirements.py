"""What a claim asks of a volume, and what a volume offers."""

from dataclasses import dataclass
from typing import NamedTuple

from bayplan.api.quantity import QuantityError, nano
from bayplan.api.selectors import LabelMatcher, compile_label_selector
from bayplan.api.storage_objects import PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec
from bayplan.api.storage_objects import PersistentVolumeClaimSpec as ClaimSpec
from bayplan.cache.listers import key_of
from bayplan.plugins.volumes.claims import VolumeError

_FILESYSTEM = "Filesystem"
_UNREADABLE = -1


class VolumeForm(NamedTuple):
    """What is the same for many volumes: the mode, the VolumeAttributesClass ("" for none) and the access modes."""

    mode: str
    attributes_class: str
    access_modes: frozenset[str]

    @classmethod
    def of(cls, spec: PersistentVolumeSpec | ClaimSpec) -> "VolumeForm":
        """Read the form that a volume has or that a claim asks for."""
        mode = _FILESYSTEM if spec.volume_mode is None else spec.volume_mode
        return cls(mode, spec.volume_attributes_class_name or "", frozenset(spec.access_modes or ()))

    def has_mode_of(self, wanted: "VolumeForm") -> bool:
        """Tell whether mode and attributes class are the same; a prebound volume needs no more than that."""
        return (self.mode, self.attributes_class) == (wanted.mode, wanted.attributes_class)

    def satisfies(self, wanted: "VolumeForm") -> bool:
        """Tell whether a free volume of this form will do for a claim of the form `wanted`."""
        return self.has_mode_of(wanted) and wanted.access_modes <= self.access_modes


@dataclass(frozen=True, slots=True)
class ClaimRequirements:
    """What a claim asks of a volume; `size` is exact, in units of 10**-9 bytes."""

    size: int
    form: VolumeForm
    selector: LabelMatcher | None

    @classmethod
    def of(cls, claim: PersistentVolumeClaim) -> "ClaimRequirements":
        """Read the requirements of a claim.

        Raises:
            VolumeError: its request is no quantity or its selector is invalid.
        """
        spec = claim.spec
        selector = None if spec.selector is None else compile_label_selector(spec.selector)
        if selector is not None and selector.error:
            key = key_of(claim.metadata)
            raise VolumeError(f"error creating internal label selector for claim: {key}: {selector.error}")
        return cls(requested_storage(claim), VolumeForm.of(spec), selector)


def requested_storage(claim: PersistentVolumeClaim) -> int:
    """Return what the claim asks for, exactly, in units of 10**-9 bytes.

    Raises:
        VolumeError: it is no quantity.
    """
    try:
        return nano((claim.spec.resources.requests or {}).get("storage"))
    except QuantityError as error:
        raise VolumeError(f"claim {key_of(claim.metadata)}: spec.resources.requests[storage]: {error}") from error


def volume_size(volume: PersistentVolume) -> int:
    """Return the volume's size, exactly, in units of 10**-9 bytes; less than any request if it is no quantity."""
    try:
        return nano((volume.spec.capacity or {}).get("storage"))
    except QuantityError:
        return _UNREADABLE
