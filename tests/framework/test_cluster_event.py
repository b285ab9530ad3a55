import pytest

from bayplan.framework.cluster_event import (
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_LABEL,
    NODE_TAINT,
    TARGET_POD_LABEL,
    TARGET_POD_UPDATE,
    WILDCARD,
    ActionType,
    ClusterEvent,
    EventResource,
    cluster_event,
)

ADD_OR_TAINT = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT, "")
ANY_POD_UPDATE = ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE, "")
EVERY_POD = ClusterEvent(EventResource.POD, ActionType.UPDATE, "")
CLASS_UPDATE = cluster_event(EventResource.STORAGE_CLASS, ActionType.UPDATE)
ANY_ADD = ClusterEvent(EventResource.WILDCARD, ActionType.ADD, "")


@pytest.mark.parametrize(
    ("event", "registered", "matches"),
    [
        (NODE_ADD, NODE_ADD, True),
        (NODE_TAINT, ADD_OR_TAINT, True),
        (NODE_LABEL, ADD_OR_TAINT, False),
        (ASSIGNED_POD_DELETE, NODE_ADD, False),
        (TARGET_POD_LABEL, ANY_POD_UPDATE, True),
        (TARGET_POD_UPDATE, ANY_POD_UPDATE, True),
        (TARGET_POD_UPDATE, TARGET_POD_LABEL, False),
        (TARGET_POD_LABEL, EVERY_POD, True),
        (ASSIGNED_POD_DELETE, EVERY_POD, False),
        (NODE_LABEL, EVERY_POD, False),
        (NODE_ADD, ANY_ADD, True),
        (NODE_TAINT, ANY_ADD, False),
        (NODE_TAINT, WILDCARD, True),
        (CLASS_UPDATE, cluster_event(EventResource.STORAGE_CLASS, ActionType.ADD | ActionType.UPDATE), True),
        (CLASS_UPDATE, cluster_event(EventResource.STORAGE_CLASS, ActionType.ADD), False),
        (cluster_event(EventResource.CSI_NODE, ActionType.UPDATE), CLASS_UPDATE, False),
    ],
)
def test_an_event_matches_a_registration_that_is_as_wide_or_wider(event, registered, matches):
    assert event.matches(registered) is matches


@pytest.mark.parametrize(
    ("resource", "action", "label"),
    [
        (EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, "PersistentVolumeClaimAdd"),
        (EventResource.CSI_NODE, ActionType.UPDATE, "CSINodeUpdate"),
        (EventResource.VOLUME_ATTACHMENT, ActionType.DELETE, "VolumeAttachmentDelete"),
        (EventResource.STORAGE_CLASS, ActionType.ADD | ActionType.UPDATE, "StorageClassAdd|Update"),
    ],
)
def test_the_event_of_a_kind_is_labelled_as_kube_scheduler_does(resource, action, label):
    assert cluster_event(resource, action) == ClusterEvent(resource, action, label)
