"""Pods of one template share what they have in common: files of large clusters say it again for each pod."""

import sys
from typing import Final

from msgspec.structs import force_setattr

from bayplan.api.objects import Pod
from bayplan.cache.resources import encoded

_LARGEST: Final = 4096
"""Parts that are longer, in encoded bytes, are not looked for: many of them alike are rare."""
_SHARED: Final = {
    "metadata": ("labels", "owner_references"),
    "spec": (
        *("containers", "init_containers", "tolerations", "node_selector"),
        *("affinity", "topology_spread_constraints", "volumes"),
    ),
    "status": ("conditions", "container_statuses", "init_container_statuses"),
}
_NAMES: Final = (("metadata", "namespace"), ("spec", "scheduler_name"), ("spec", "node_name"), ("status", "phase"))
"""Texts that thousands of pods have."""


class SharedParts:
    """Keeps one of each part that pods have; it grows by what is different in them, and goes with the reader."""

    def __init__(self) -> None:
        self._known: dict[str, dict[bytes, object]] = {field: {} for fields in _SHARED.values() for field in fields}

    def of(self, pod: Pod) -> Pod:
        """Return the pod, which nobody else knows yet, with its parts replaced by equal ones that other pods have."""
        for name, fields in _SHARED.items():
            struct = getattr(pod, name)
            for field in fields:
                part = getattr(struct, field)
                key = encoded(part, largest=_LARGEST) if part else None
                if key is not None and (known := self._known[field].setdefault(key, part)) is not part:
                    force_setattr(struct, field, known)
        for name, field in _NAMES:
            struct = getattr(pod, name)
            force_setattr(struct, field, sys.intern(getattr(struct, field)))
        return pod
