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
from bayplan.framework.cluster_event import ActionType, cluster_event
from bayplan.framework.cluster_event import EventResource as Kind

POD = pod_with("c", ephemeral=("e",))
INLINE = pod_with(volumes=[Volume(csi={"driver": "d"})])
SPACE = capacity("a", "x", "2Gi", None)
COUNTING, NOT_COUNTING = csi_driver("d"), csi_driver("d", storage_capacity=False)


@pytest.mark.parametrize(
    ("resource", "pod", "old", "new", "expected"),
    [
        (Kind.PERSISTENT_VOLUME_CLAIM, POD, claim(), claim(), "Queue"),
        (Kind.PERSISTENT_VOLUME_CLAIM, POD, None, claim("p-e"), "Queue"),
        (Kind.PERSISTENT_VOLUME_CLAIM, POD, claim("x"), claim("x"), "QueueSkip"),
        (Kind.PERSISTENT_VOLUME, POD, volume("v"), volume("v"), "Queue"),
        (Kind.CSI_STORAGE_CAPACITY, POD, SPACE, capacity("a", "x", "3Gi", None), "Queue"),
        (Kind.CSI_STORAGE_CAPACITY, POD, SPACE, capacity("a", "x", "2Gi", None, "1Gi"), "QueueSkip"),
        (Kind.STORAGE_CLASS, POD, delayed_class(), delayed_class(), "QueueSkip"),
        (Kind.STORAGE_CLASS, POD, delayed_class(), delayed_class(zone="a"), "Queue"),
        (Kind.STORAGE_CLASS, POD, None, delayed_class(), "Queue"),
        (Kind.CSI_NODE, POD, csi_node("n"), csi_node("n", migrated="x"), "Queue"),
        (Kind.CSI_NODE, POD, csi_node("n"), csi_node("n", d=1), "QueueSkip"),
        (Kind.CSI_DRIVER, INLINE, COUNTING, NOT_COUNTING, "Queue"),
        (Kind.CSI_DRIVER, POD, COUNTING, NOT_COUNTING, "QueueSkip"),
        (Kind.CSI_DRIVER, INLINE, NOT_COUNTING, COUNTING, "QueueSkip"),
    ],
)
def test_only_changes_that_may_help_wake_the_pod(resource, pod, old, new, expected):
    event = cluster_event(resource, ActionType.ADD if old is None else ActionType.UPDATE)
    assert hint(VolumeScene().binding, event, pod, old, new) == expected
