from tests.builders import make_pod, make_pod_info
from tests.plugins.scenes import hint

from bayplan.framework.cluster_event import TARGET_POD_GATES
from bayplan.framework.status import SUCCESS, Code
from bayplan.plugins.scheduling_gates import SchedulingGates


def test_a_pod_without_gates_enters_the_queue():
    assert SchedulingGates().pre_enqueue(make_pod_info()) is SUCCESS


def test_a_pod_with_gates_is_told_which():
    status = SchedulingGates().pre_enqueue(make_pod_info(gates=["a", "b"]))
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message == "waiting for scheduling gates: [a b]"


def test_the_end_of_its_gates_brings_a_pod_back():
    pod = make_pod(uid="u", gates=["a"])
    assert hint(SchedulingGates(), TARGET_POD_GATES, pod, pod, make_pod(uid="u")) == "Queue"
