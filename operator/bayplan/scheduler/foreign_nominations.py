"""Nominations of pods that other schedulers place: room on our nodes that is spoken for."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bayplan.api.objects import Pod
from bayplan.api.selectors import escape_field_value
from bayplan.cache.pod_info import PodInfo
from bayplan.queue.scheduling_queue import SchedulingQueue

logger = logging.getLogger(__name__)


def foreign_nominations_selector(scheduler_names: Iterable[str]) -> str:
    """The field selector of pending pods that are nominated and not placed by any of these schedulers."""
    others = [f"spec.schedulerName!={escape_field_value(name)}" for name in sorted(scheduler_names)]
    return ",".join(["spec.nodeName=", "status.nominatedNodeName!=", *others])


@dataclass(eq=False)
class ForeignNominationEvents:
    """Keeps room for pods of other schedulers as for our own; they are never queued and nothing is written on them.

    The watch must hold exactly the pods of `foreign_nominations_selector`: a pod that is bound or loses its nomination
    leaves it.
    """

    queue: SchedulingQueue
    wake: Callable[[], None]

    def on_add(self, pod: Pod) -> None:
        """A nomination appeared."""
        info = PodInfo(pod)
        try:
            _ = info.requests
        except ValueError as error:
            logger.warning("nomination not counted pod=%r error=%s", info.key, error)
            self.on_delete(pod)
            return
        if pod.status.nominated_node_name:
            self.queue.nominate(info, pod.status.nominated_node_name)
            self.wake()

    def on_update(self, old: Pod, new: Pod) -> None:
        """A nominated pod changed, perhaps its node."""
        self.on_add(new)

    def on_delete(self, pod: Pod) -> None:
        """The pod was bound, deleted, or is nominated no more."""
        self.queue.withdraw(pod.metadata.uid)
        self.wake()

    def on_synced(self) -> None:
        """All nominations there were at the start are known."""
