"""What no decision depends on is left out of a snapshot, whether or not it is redacted."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from bayplan.api.objects import NodeStatus, PodCondition, PodStatus, Volume
from bayplan.simulate.workloads import JobStatus
from bayplan.snapshot.rewriting import Rewriting, Rule, as_it_is

_READ_OF_VOLUMES: Final[Mapping[str, Collection[str]]] = {
    "ephemeral": (),
    "gce_persistent_disk": ("pdName", "readOnly"),
    "aws_elastic_block_store": ("volumeID",),
    "azure_disk": ("diskURI", "kind"),
    "azure_file": (),
    "cinder": ("volumeID",),
    "portworx_volume": ("volumeID",),
    "vsphere_volume": (),
    "rbd": ("pool", "image", "monitors", "readOnly"),
    "iscsi": ("iqn", "readOnly"),
    "csi": ("driver",),
}
"""What plugins read of a pod's own volumes, by field of `Volume`; drivers may keep secrets beside it."""
_READ_OF_PODS: Final = ("PodResizePending", "DisruptionTarget", "Ready")
_READ_OF_JOBS: Final = ("Complete", "Failed")


def _only(keys: Collection[str]) -> Rule:
    def rule(source: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in source.items() if key in keys}

    return rule


def _conditions(types: Collection[str]) -> Rule:
    def rule(conditions: Sequence[PodCondition]) -> list[PodCondition] | None:
        read = [PodCondition(each.type, each.status, each.reason) for each in conditions if each.type in types]
        return read or None

    return rule


_RULES: Final[Mapping[tuple[type, str], Rule]] = {
    (PodStatus, "conditions"): _conditions(_READ_OF_PODS),
    (JobStatus, "conditions"): _conditions(_READ_OF_JOBS),
    (NodeStatus, "conditions"): lambda conditions: None,
    **{(Volume, field): _only(keys) for field, keys in _READ_OF_VOLUMES.items()},
}

trimmed: Final = Rewriting(_RULES, as_it_is)
"""An object without conditions that nobody reads, and of a pod's own volumes only what plugins read.

Annotations, environments, commands and managed fields are gone before: what is read from the API server is decoded to
what simulations read.
"""
