"""Parts of pods that are equal and large, held once."""

from typing import Any, Final, TypeVar

from msgspec.structs import replace

from bayplan.api.objects import Pod
from bayplan.cache.recently_used import RecentlyUsed
from bayplan.cache.resources import encoded

_KEPT_BYTES: Final = 2**20
"""How many bytes the parts that are known have together, as encoded: of some thousand templates."""
_LARGEST: Final = 8192

T = TypeVar("T")


class SharedParts:
    """Has pods of one template share what it gives them; the watch of pods on nodes relies on it.

    Of a pod of the usual size that is two thirds, and most pods are of few templates. Nobody changes a part in place.
    """

    def __init__(self) -> None:
        self._parts: RecentlyUsed[tuple[str, bytes], Any] = RecentlyUsed(_KEPT_BYTES, lambda key, _: len(key[1]))

    def share(self, pod: Pod) -> Pod:
        """Return an equal pod with parts of those before it."""
        meta, spec, one = pod.metadata, pod.spec, self._one
        return replace(
            pod,
            metadata=replace(meta, labels=one("labels", meta.labels), owner_references=one("o", meta.owner_references)),
            spec=replace(
                spec,
                node_selector=one("node_selector", spec.node_selector),
                affinity=one("affinity", spec.affinity),
                tolerations=one("tolerations", spec.tolerations),
                containers=one("containers", spec.containers),
                init_containers=one("init_containers", spec.init_containers),
                topology_spread_constraints=one("t", spec.topology_spread_constraints),
                volumes=one("volumes", spec.volumes),
            ),
        )

    def _one(self, name: str, part: T) -> T:
        """Return the first part of that name that is equal, as its encoding tells."""
        if not part:
            return part
        written = encoded(part, largest=_LARGEST)
        if written is None:
            return part
        known: T | None = self._parts.get((name, written))
        if known is None:
            self._parts.put((name, written), part)
            return part
        return known
