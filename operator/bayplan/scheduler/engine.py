"""What of the scheduler depends on its configuration, made as a whole so that it can be replaced as a whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bayplan.framework.runtime import Framework
from bayplan.queue.queue_profile import QueueSettings
from bayplan.scheduler.binder import Binder
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.extender.client import ExtenderClient
from bayplan.scheduler.extender.cycle import ExtendedCycle


@dataclass(frozen=True, slots=True, eq=False)
class Engine:
    """Decides and binds as one configuration says; the scheduler has one at a time.

    Cache, nominations, what plugins assume and the pods that wait for Permit plugins are the process's: another engine
    on the same ones goes on where this one was. Without `extended` no extender is called for decisions; `extenders` are
    closed by whoever replaces it.
    """

    frameworks: Mapping[str, Framework]
    cycle: SchedulingCycle
    binder: Binder
    queue: QueueSettings
    extended: ExtendedCycle | None = None
    extenders: Sequence[ExtenderClient] = ()
