"""Pods of one template share what they have in common: files of large clusters say it again for each pod."""

import sys
from typing import Final

from msgspec.structs import force_setattr

from bayplan.api.objects import Pod
from bayplan.cache.resources import encoded

_LARGEST: Final = 4096
"""Parts that are longer, in encoded bytes, are not looked for: many of them alike are rare."""
_OF_METADATA: Final = ("labels", "owner_references")
_OF_SPEC: Final = (
    "containers",
    "init_containers",
    "tolerations",
    "node_selector",
    "affinity",
    "topology_spread_constraints",
    "volumes",
)
_OF_STATUS: Final = ("conditions", "container_statuses", "init_container_statuses")


class SharedParts:
    """Keeps one of each part that pods have; it grows by what is different in them, and goes with the reader."""

    def __init__(self) -> None:
        self._known: dict[str, dict[bytes, object]] = {each: {} for each in (*_OF_METADATA, *_OF_SPEC, *_OF_STATUS)}

    def of(self, pod: Pod) -> Pod:
        """Return the pod, which nobody else knows yet, with its parts replaced by equal ones that other pods have."""
        meta, spec, status = pod.metadata, pod.spec, pod.status
        for struct, fields in ((meta, _OF_METADATA), (spec, _OF_SPEC), (status, _OF_STATUS)):
            for field in fields:
                part = getattr(struct, field)
                key = encoded(part, largest=_LARGEST) if part else None
                if key is not None and (known := self._known[field].setdefault(key, part)) is not part:
                    force_setattr(struct, field, known)
        # Names that thousands of pods have.
        force_setattr(meta, "namespace", sys.intern(meta.namespace))
        force_setattr(spec, "scheduler_name", sys.intern(spec.scheduler_name))
        force_setattr(spec, "node_name", sys.intern(spec.node_name))
        force_setattr(status, "phase", sys.intern(status.phase))
        return pod
