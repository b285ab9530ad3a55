import pytest
from tests.plugins.scenes import hint
from tests.plugins.volume_scenes import (
    VolumeScene,
    capacity,
    claim,
    csi_driver,
    csi_node,
    delayed_class,
    pod_with,
    volume,
)

from bayplan.api.objects import Volume
from bayplan.framework.cluster_event import ActionType, EventResource, cluster_event

PVC, SPACE, CLASS = (
    EventResource.PERSISTENT_VOLUME_CLAIM,
    EventResource.CSI_STORAGE_CAPACITY,
    EventResource.STORAGE_CLASS,
)
CSI_NODE, CSI_DRIVER = EventResource.CSI_NODE, EventResource.CSI_DRIVER
POD = pod_with("c", ephemeral=("e",))
INLINE = pod_with(volumes=[Volume(csi={"driver": "d"})])
COUNTING, NOT_COUNTING = csi_driver("d"), csi_driver("d", storage_capacity=False)


@pytest.mark.parametrize(
    ("resource", "pod", "old", "new", "expected"),
    [
        (PVC, POD, claim(), claim(), "Queue"),
        (PVC, POD, None, claim("p-e"), "Queue"),
        (PVC, POD, claim("x"), claim("x"), "QueueSkip"),
        (EventResource.PERSISTENT_VOLUME, POD, volume("v"), volume("v"), "Queue"),
        (SPACE, POD, capacity("a", "x", "1Gi", None), capacity("a", "x", "2Gi", None), "Queue"),
        (SPACE, POD, capacity("a", "x", "2Gi", None), capacity("a", "x", "2Gi", None, "1Gi"), "QueueSkip"),
        (CLASS, POD, delayed_class(), delayed_class(), "QueueSkip"),
        (CLASS, POD, delayed_class(), delayed_class(zone="a"), "Queue"),
        (CLASS, POD, None, delayed_class(), "Queue"),
        (CSI_NODE, POD, csi_node("n"), csi_node("n", migrated="x"), "Queue"),
        (CSI_NODE, POD, csi_node("n"), csi_node("n", d=1), "QueueSkip"),
        (CSI_DRIVER, INLINE, COUNTING, NOT_COUNTING, "Queue"),
        (CSI_DRIVER, POD, COUNTING, NOT_COUNTING, "QueueSkip"),
        (CSI_DRIVER, INLINE, NOT_COUNTING, COUNTING, "QueueSkip"),
    ],
)
def test_only_changes_that_may_help_wake_the_pod(resource, pod, old, new, expected):
    event = cluster_event(resource, ActionType.ADD if old is None else ActionType.UPDATE)
    assert hint(VolumeScene().binding, event, pod, old, new) == expected
