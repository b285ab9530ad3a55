import pytest

from bayplan.queue.cluster_event import (
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_LABEL,
    NODE_TAINT,
    UNSCHEDULABLE_POD_LABEL,
    UNSCHEDULABLE_POD_UPDATE,
    WILDCARD,
    ActionType,
    ClusterEvent,
    EventResource,
)

ADD_OR_TAINT = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT, "")
ANY_POD_UPDATE = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE, "")
ANY_ADD = ClusterEvent(EventResource.WILDCARD, ActionType.ADD, "")


@pytest.mark.parametrize(
    ("event", "registered", "matches"),
    [
        (NODE_ADD, NODE_ADD, True),
        (NODE_TAINT, ADD_OR_TAINT, True),
        (NODE_LABEL, ADD_OR_TAINT, False),
        (ASSIGNED_POD_DELETE, NODE_ADD, False),
        (UNSCHEDULABLE_POD_LABEL, ANY_POD_UPDATE, True),
        (UNSCHEDULABLE_POD_UPDATE, ANY_POD_UPDATE, True),
        (UNSCHEDULABLE_POD_UPDATE, UNSCHEDULABLE_POD_LABEL, False),
        (NODE_ADD, ANY_ADD, True),
        (NODE_TAINT, ANY_ADD, False),
        (WILDCARD, NODE_ADD, True),
        (NODE_TAINT, WILDCARD, True),
    ],
)
def test_an_event_matches_a_registration_that_is_as_wide_or_wider(event, registered, matches):
    assert event.matches(registered) is matches
