"""SchedulingGates: pods with gates stay out of the queue."""

from collections.abc import Sequence
from typing import ClassVar

from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import TARGET_POD_GATES, EventRegistration
from bayplan.framework.status import SUCCESS, Code, Status, Traits


class SchedulingGates:
    """Holds pods until `spec.schedulingGates` is empty (upstream: plugins/schedulinggates/scheduling_gates.go)."""

    name: ClassVar[str] = "SchedulingGates"
    traits: ClassVar[Traits] = Traits()

    def pre_enqueue(self, pod: PodInfo) -> Status:
        gates = pod.pod.spec.scheduling_gates
        if not gates:
            return SUCCESS
        text = f"waiting for scheduling gates: [{' '.join(gate.name for gate in gates)}]"
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (text,))

    def events_to_register(self) -> Sequence[EventRegistration]:
        return (EventRegistration(TARGET_POD_GATES),)
