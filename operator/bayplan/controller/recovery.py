"""What is asked for anew when the API server comes back, or comes back as it was before."""

import logging

from bayplan.controller.intake_list import IntakeList
from bayplan.controller.operator_thread import OperatorThread
from bayplan.controller.watches import Watches
from bayplan.scheduler.pending_pods import PendingPodEvents

logger = logging.getLogger(__name__)


class Recovery:
    """Asks the other parts to look again after an outage or an etcd restore, of which the watches and the list tell it.

    These need it when they are made. So it is made first, and `connect` gives it the parts before anything runs.
    """

    _watches: Watches
    _intake_list: IntakeList
    _operator: OperatorThread
    _pending: PendingPodEvents

    def __init__(self) -> None:
        self._is_another_history = False

    def connect(
        self, watches: Watches, intake_list: IntakeList, operator: OperatorThread, pending: PendingPodEvents
    ) -> None:
        """Name the parts that are asked to look."""
        self._watches, self._intake_list, self._operator, self._pending = watches, intake_list, operator, pending

    def recovered(self) -> None:
        """The API server was away and is back, or the watch of pods on nodes had a gap."""
        if self._is_another_history:
            # Only now are pods that had a node in the other history known to have none.
            self._is_another_history = False
            self._intake_list.ask_for_fill()
        else:
            self._intake_list.ask_for_comparison()
        self._operator.end_pause()

    def went_back(self) -> None:
        """A list is older than what was known: etcd was restored from a backup, and nothing known counts."""
        if self._is_another_history:
            return
        logger.warning("the API server's resourceVersions went back: taking all its lists as the truth")
        self._is_another_history = True
        self._pending.forget_versions()
        self._watches.relist()
        # A watch of versions that are yet to come would be silent until they do.
        self._operator.restart()
