"""What filters ask about nominated pods (upstream: framework/interface.go PodNominator)."""

from collections.abc import Collection
from typing import Protocol

from bayplan.cache.pod_info import PodInfo


class PodNominator(Protocol):
    """Which pods are nominated to which node; the queue's Nominator is one."""

    @property
    def position(self) -> int:
        """Where the list of changes ends now, for `changed_since`."""
        ...

    def changed_since(self, position: int) -> set[str] | None:
        """The nodes whose nominations changed after `position`; None if that is not known any more."""
        ...

    def nodes(self) -> Collection[str]:
        """The names of the nodes that any pod is nominated to; they need not exist."""
        ...

    def nominated_pods_for_node(self, node: str) -> list[PodInfo]:
        """The pods nominated to `node`, in order of nomination."""
        ...

    def nominated_node(self, uid: str) -> str | None:
        """The node the pod is nominated to."""
        ...

    def lowest_priority_from(self, priority: int) -> int | None:
        """The lowest priority of a nominated pod that is at least `priority`; None if no such pod is nominated."""
        ...
