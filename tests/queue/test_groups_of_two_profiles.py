"""Members of a group may be of several profiles, each with plugins and a configuration of its own."""

import pytest
from tests.group_builders import make_pod_group
from tests.queue.scene import Scene, make_profile
from tests.queue.test_pod_groups import member
from tests.queue_checks import assert_consistent

from bayplan.cache.cache import Cache
from bayplan.cache.group_members import GroupSource
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import NODE_CONDITION, EventRegistration
from bayplan.framework.status import SUCCESS, Code, Status
from bayplan.groups.pod_groups import PodGroups
from bayplan.queue.queue_settings import QueueProfile, QueueSettings
from bayplan.queue.queued_pod import SubQueue


class TwoProfiles(Scene):
    """A gang whose first member is of a profile without Holiday, and whose second one is held by it."""

    def __init__(self) -> None:
        self.is_holiday = True
        groups = PodGroups(Cache())
        groups.serve(GroupSource.NATIVE)
        super().__init__(profile=self.with_holidays(), groups=groups)
        self.queue.set_group(make_pod_group(least=2))
        self.queue.add(member("a", scheduler_name="other"))
        self.queue.add(member("b", scheduler_name="bayplan"))

    def with_holidays(self) -> QueueProfile:
        registrations = {"Holiday": [EventRegistration(NODE_CONDITION)]}
        return make_profile(pre_enqueue=self.holiday, registrations=registrations)

    def holiday(self, pod: PodInfo) -> Status:
        return Status(Code.UNSCHEDULABLE, ("not yet",), "Holiday") if self.is_holiday else SUCCESS


@pytest.fixture
def scene() -> TwoProfiles:
    return TwoProfiles()


def test_an_event_opens_the_gate_of_a_member_whose_profile_alone_registered_for_it(scene: TwoProfiles) -> None:
    assert scene.sub_queue("a") is SubQueue.GATED
    scene.move(NODE_CONDITION)
    assert scene.sub_queue("a") is SubQueue.GATED
    scene.is_holiday = False
    scene.move(NODE_CONDITION)
    assert scene.sub_queue("a") is SubQueue.ACTIVE


def test_a_changed_profile_opens_the_gate_of_a_member_that_is_not_the_first(scene: TwoProfiles) -> None:
    profiles = {"bayplan": make_profile(), "other": make_profile()}
    scene.queue.take_over(QueueSettings(profiles), ["bayplan"])
    assert_consistent(scene.queue)
    assert scene.sub_queue("a") is SubQueue.ACTIVE
