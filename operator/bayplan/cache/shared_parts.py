"""Parts of pods that are equal, held once."""

import sys
from typing import Final

from msgspec.structs import force_setattr

from bayplan.api.objects import Pod
from bayplan.cache.recently_used import RecentlyUsed
from bayplan.cache.resources import encoded

_KEPT_BYTES: Final = 2**20
"""How many bytes the parts that are known have together, as encoded: of some thousand templates."""
_LARGEST: Final = 8192
"""Parts that are longer, in encoded bytes, are not looked for: many of them alike are rare."""
_SHARED: Final = {
    "metadata": ("labels", "owner_references"),
    "spec": (
        *("containers", "init_containers", "tolerations", "node_selector"),
        *("affinity", "topology_spread_constraints", "volumes"),
    ),
    "status": ("conditions", "container_statuses", "init_container_statuses"),
}
_TEXTS: Final = (
    *(("metadata", "namespace"), ("metadata", "creation_timestamp"), ("spec", "scheduler_name"), ("spec", "node_name")),
    *(("status", "phase"), ("status", "start_time")),
)
"""Texts that many pods have: times are whole seconds."""


class SharedParts:
    """Has pods share what their template gives them; the watches, the queue and simulations of files rely on it.

    Of a pod of the usual size that is two thirds, and most pods are of few templates. Nobody changes a part in place.
    """

    def __init__(self) -> None:
        self._known: RecentlyUsed[tuple[str, bytes], object] = RecentlyUsed(_KEPT_BYTES, lambda key, _: len(key[1]))

    def of(self, pod: Pod) -> Pod:
        """Return the pod, which nobody else knows yet, with its parts replaced by equal ones that other pods have."""
        for name, parts in _SHARED.items():
            struct = getattr(pod, name)
            for part in parts:
                held = getattr(struct, part)
                written = encoded(held, largest=_LARGEST) if held else None
                if written is None:
                    continue
                if (known := self._known.get((part, written))) is None:
                    self._known.put((part, written), held)
                else:
                    force_setattr(struct, part, known)
        for name, text in _TEXTS:
            struct = getattr(pod, name)
            if held := getattr(struct, text):
                force_setattr(struct, text, sys.intern(held))
        return pod
