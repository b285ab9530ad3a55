from tests.queue.scene import info

from bayplan.framework.cluster_event import EventResource
from bayplan.queue.queueing_hints import pod_changes


def labels(old, new):
    return [event.label.removeprefix("TargetPodUpdate") for event in pod_changes(old, new, EventResource.TARGET_POD)]


def test_each_change_is_an_event_of_its_own():
    old = info("p", gates=["g"], cpu="2")
    new = info("p", colour="red", cpu="1", tolerations=["gpu"])
    assert labels(old, new) == ["PodLabel", "PodScaleDown", "PodSchedulingGatesEliminated", "PodToleration"]


def test_a_change_of_nothing_special_is_a_plain_update():
    assert labels(info("p"), info("p", version="2")) == [""]


def test_more_resources_are_no_scale_down():
    assert labels(info("p", cpu="1"), info("p", cpu="2", memory="1Gi")) == [""]


def test_a_dropped_resource_is_a_scale_down():
    assert labels(info("p", cpu="1", memory="1Gi"), info("p", cpu="1")) == ["PodScaleDown"]


def test_one_gate_of_two_removed_eliminates_nothing():
    assert labels(info("p", gates=["a", "b"]), info("p", gates=["b"])) == [""]


def test_a_quantity_that_cannot_be_read_counts_as_scale_down():
    assert labels(info("p", cpu="1"), info("p", cpu="garbage")) == ["PodScaleDown"]
