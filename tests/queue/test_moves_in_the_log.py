"""What the log says of the queue at `-v 4` and `-v 5`."""

import pytest
from tests.queue.scene import info

from bayplan.logs.formats import V4, V5


@pytest.fixture
def moved(scene, caplog):
    """Has the pod p come gated, be freed, fail and back off; returns what was logged at that level."""

    def move(level):
        caplog.set_level(level, logger="bayplan.queue")
        scene.add("p", gates=["a"])
        scene.update(info("p", version="2"))
        scene.fail(scene.pop())
        return caplog.messages

    return move


def test_each_move_is_a_line_at_v_5(moved):
    moves = [message for message in moved(V5) if message.startswith("Pod moved")]
    start = "Pod moved to an internal scheduling queue pod='default/p'"
    assert moves == [
        f"{start} event=UnscheduledPodAdd queue=gated",
        f"{start} event=TargetPodUpdatePodSchedulingGatesEliminated queue=active",
        f"{start} event=ScheduleAttemptFailure queue=unschedulable",
    ]


def test_why_a_pod_is_held_is_a_line_at_v_4_and_nothing_else(moved):
    assert moved(V4) == ["Pod is gated pod='default/p' plugin=SchedulingGates reason=waiting for 1 gates"]


def test_below_that_the_queue_says_nothing(moved):
    assert moved(V4 + 1) == []
