"""Pod groups in the queue: where members wait, what holds a group, and what becomes of it after a round."""

import pytest
from tests.builders import make_pod_info
from tests.group_builders import make_pod_group
from tests.queue.scene import FIT, Scene
from tests.queue_checks import assert_consistent

from bayplan.cache.cache import Cache
from bayplan.cache.group_members import POD_GROUP_LABEL, GroupSource
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import ASSIGNED_POD_ADD, NODE_ADD
from bayplan.groups.pod_groups import PodGroups
from bayplan.queue.queued_pod import SubQueue
from bayplan.queue.queued_pod_group import QueuedPodGroup

TOO_FEW = "waiting for minCount pods from a gang to appear in scheduling queue"


class GroupScene(Scene):
    """A queue where both kinds of group are served, or only some."""

    def __init__(self, *served: GroupSource) -> None:
        self.cache = Cache()
        self.groups = PodGroups(self.cache)
        for source in served or GroupSource:
            self.groups.serve(source)
        super().__init__(groups=self.groups)

    def member(self, name: str, group: str = "g", **fields) -> PodInfo:
        pod = member(name, group, **fields)
        self.queue.add(pod)
        assert_consistent(self.queue)
        return pod

    def gang(self, least: int, *names: str, **group) -> None:
        self.set_group(least=least, **group)
        for name in names:
            self.member(name)

    def set_group(self, name: str = "g", **fields) -> None:
        self.queue.set_group(make_pod_group(name, **fields))
        assert_consistent(self.queue)

    def remove_group(self, name: str = "g") -> None:
        self.queue.remove_group(make_pod_group(name).key)
        assert_consistent(self.queue)

    def pop_group(self) -> QueuedPodGroup:
        entity = self.pop()
        assert isinstance(entity, QueuedPodGroup)
        return entity

    def fail_round(self, entity: QueuedPodGroup, *, error: bool = False, waits: bool = False) -> None:
        for each in entity.members.values():
            self.fail(each, frozenset())
        self.queue.finish_round(entity, failed=True, error=error, waits=waits)
        assert_consistent(self.queue)

    def message(self, name: str) -> str | None:
        queued = self.queue.get(name)
        return None if queued is None else queued.gating_message


@pytest.fixture
def scene() -> GroupScene:
    return GroupScene()


def member(name: str, group: str = "g", **fields) -> PodInfo:
    return make_pod_info(name, uid=name, group=group, **fields)


def test_members_wait_for_their_group_to_appear(scene):
    scene.member("a")
    assert scene.sub_queue("a") is SubQueue.GATED
    assert scene.message("a") == 'waiting for pods\'s pod group "g" to appear in scheduling queue'
    assert scene.queue.pop() is None
    assert scene.queue.pending()["gated"] == 1
    scene.set_group(least=1)
    assert list(scene.pop_group().members) == ["a"]


def test_a_gang_waits_for_as_many_members_as_it_needs(scene):
    scene.gang(3, "a", "b")
    assert scene.message("b") == TOO_FEW
    assert scene.queue.pop() is None
    scene.member("c")
    assert scene.sub_queue("a") is SubQueue.ACTIVE
    assert list(scene.pop_group().members) == ["a", "b", "c"]


def test_a_group_of_basic_policy_waits_for_nobody(scene):
    scene.set_group()
    scene.member("a")
    assert list(scene.pop_group().members) == ["a"]


def test_members_on_nodes_count_whoever_bound_them(scene):
    scene.gang(2, "a")
    there = member("b", node="n1")
    scene.cache.set_pod(there)
    scene.queue.move_all(ASSIGNED_POD_ADD, None, there)
    assert list(scene.pop_group().members) == ["a"]


def test_a_gang_that_runs_in_part_goes_before_others_of_its_priority(scene):
    scene.add("older")
    scene.wait(1)
    scene.cache.set_pod(member("a", node="n1"))
    scene.gang(2, "b")
    scene.add("higher", priority=1)
    assert scene.pop().uid == "higher"
    assert list(scene.pop_group().members) == ["b"]
    assert scene.pop().uid == "older"


def test_a_lower_least_number_lets_a_gang_go(scene):
    scene.gang(3, "a", "b")
    scene.set_group(least=2)
    assert scene.sub_queue("a") is SubQueue.ACTIVE


def test_one_gated_member_holds_the_group(scene):
    scene.gang(2, "a", "b")
    scene.member("c", gates=["wait"])
    assert scene.message("c") == "waiting for 1 gates"
    assert scene.message("a") == 'waiting for pod "c" of the pod group: waiting for 1 gates'
    scene.update(member("c", resource_version="2"))
    assert len(scene.pop_group().members) == 3


def test_members_are_tried_by_priority_then_attempts_then_age_then_name(scene):
    scene.set_group(crd=True, least=2)
    label = {POD_GROUP_LABEL: "g"}
    for name, priority in (("b", 0), ("a", 0), ("top", 5)):
        scene.queue.add(make_pod_info(name, uid=name, labels=label, priority=priority))
    assert list(scene.pop_group().members) == ["top", "a", "b"]


def test_a_failed_member_goes_before_one_that_is_new(scene):
    scene.gang(1, "z")
    entity = scene.pop_group()
    scene.fail(entity.members["z"], frozenset())
    scene.queue.finish_round(entity, failed=False)
    scene.member("a")
    assert list(scene.pop_group().members) == ["z", "a"]


def test_a_native_group_stands_at_its_own_priority(scene):
    scene.set_group(least=1, priority=-5)
    scene.member("a", priority=100)
    scene.add("single")
    assert scene.pop().uid == "single"
    assert isinstance(scene.pop(), QueuedPodGroup)


def test_a_group_of_the_crd_stands_at_its_highest_members_priority(scene):
    scene.set_group(crd=True, least=2)
    label = {POD_GROUP_LABEL: "g"}
    scene.queue.add(make_pod_info("low", uid="low", labels=label, priority=0))
    scene.add("single", priority=3)
    scene.queue.add(make_pod_info("high", uid="high", labels=label, priority=7))
    assert isinstance(scene.pop(), QueuedPodGroup)


def test_a_group_backs_off_after_a_failed_round_whatever_happens(scene):
    scene.gang(2, "a", "b")
    for seconds in (1, 2, 4, 8, 10, 10):
        scene.fail_round(scene.pop_group())
        assert scene.sub_queue("a") is SubQueue.ERROR_BACKOFF
        scene.move(NODE_ADD)
        scene.wait(seconds - 0.5)
        assert scene.queue.pop() is None
        scene.wait(1.5)


def test_what_a_round_leaves_over_is_tried_at_once(scene):
    scene.gang(2, "a", "b", "c")
    entity = scene.pop_group()
    for name in ("a", "b"):
        scene.queue.done(name)
    scene.fail(entity.members["c"], FIT)
    scene.queue.finish_round(entity, failed=False)
    assert scene.sub_queue("c") is SubQueue.GATED, "two are bound in this story, but on no node that the cache knows"
    for name in ("a", "b"):
        there = member(name, node="n1")
        scene.cache.set_pod(there)
        scene.queue.move_all(ASSIGNED_POD_ADD, None, there)
    assert list(scene.pop_group().members) == ["c"]


def test_a_group_leaves_with_its_last_member(scene):
    scene.gang(1, "a", "b")
    entity = scene.pop_group()
    for name in ("a", "b"):
        scene.queue.done(name)
    scene.queue.finish_round(entity, failed=False)
    assert_consistent(scene.queue)
    assert scene.queue.uids() == set()
    assert sum(scene.queue.pending().values()) == 0


def test_members_that_come_in_mid_round_are_tried_in_the_next_one(scene):
    scene.gang(1, "a")
    entity = scene.pop_group()
    scene.member("b")
    assert scene.queue.get("b") is not None
    assert scene.queue.pop() is None
    scene.queue.done("a")
    scene.queue.finish_round(entity, failed=False)
    assert list(scene.pop_group().members) == ["b"]


def test_a_member_deleted_in_mid_round_does_not_come_back(scene):
    scene.gang(2, "a", "b")
    entity = scene.pop_group()
    scene.queue.delete("a")
    scene.fail_round(entity)
    assert scene.queue.uids() == {"b"}
    assert scene.message("b") == TOO_FEW


def test_members_of_a_group_that_went_in_mid_round_wait_for_another(scene):
    scene.gang(1, "a")
    entity = scene.pop_group()
    scene.remove_group()
    scene.fail_round(entity)
    assert "to appear" in scene.message("a")
    scene.set_group(least=1)
    assert scene.sub_queue("a") is SubQueue.ACTIVE


def test_members_of_a_deleted_group_wait_for_another_of_its_name(scene):
    scene.gang(2, "a", "b")
    scene.remove_group()
    assert "to appear" in scene.message("a")
    assert scene.queue.uids() == {"a", "b"}


def test_a_deleted_member_may_leave_too_few(scene):
    scene.gang(2, "a", "b")
    scene.queue.delete("a")
    assert_consistent(scene.queue)
    assert scene.message("b") == TOO_FEW


def test_a_member_whose_bind_failed_makes_its_group_back_off(scene):
    scene.gang(1, "a")
    entity = scene.pop_group()
    queued = entity.members["a"]
    scene.queue.finish_round(entity, failed=False)
    scene.fail(queued, frozenset(), error=True)
    assert scene.sub_queue("a") is SubQueue.ERROR_BACKOFF
    scene.wait(2)
    assert scene.pop_group().members["a"].attempts == 2


def test_a_pod_that_names_a_kind_nobody_serves_is_an_ordinary_one():
    scene = GroupScene(GroupSource.NATIVE)
    scene.queue.add(make_pod_info("a", uid="a", labels={POD_GROUP_LABEL: "g"}))
    assert scene.pop().uid == "a"


def test_a_kind_that_comes_makes_ordinary_pods_members():
    scene = GroupScene(GroupSource.NATIVE)
    scene.gang(1, "own")
    scene.queue.add(make_pod_info("a", uid="a", labels={POD_GROUP_LABEL: "g"}))
    scene.queue.set_group(make_pod_group(least=1, crd=True))
    scene.groups.serve(GroupSource.CRD)
    scene.queue.regroup()
    assert_consistent(scene.queue)
    assert [list(scene.pop_group().members) for _ in range(2)] == [["own"], ["a"]]


def test_a_label_moves_a_waiting_pod_into_a_group_and_out_of_it(scene):
    scene.set_group(crd=True, least=2)
    scene.add("a")
    labels = {POD_GROUP_LABEL: "g"}
    scene.update(make_pod_info("a", uid="a", labels=labels, resource_version="2"))
    assert scene.message("a") == TOO_FEW
    scene.update(make_pod_info("a", uid="a", resource_version="3"))
    assert scene.pop().uid == "a"


def test_questions_see_members_as_pods(scene):
    scene.gang(2, "a", "b")
    scene.add("single")
    assert scene.queue.uids() == {"a", "b", "single"} == {each.uid for each in scene.queue.queued()}
    assert scene.queue.pending() == {"active": 3, "backoff": 0, "unschedulable": 0, "gated": 0}
    assert scene.queue.newest("a").name == "a"
    entity = scene.pop()
    assert isinstance(entity, QueuedPodGroup)
    assert {pod.uid for pod in scene.queue.in_flight()} == {"a", "b"}
    assert scene.queue.get("a").sub_queue is None


def test_a_group_that_waits_counts_once_and_its_members_are_no_pods_of_their_own(scene):
    scene.gang(2, "a", "b")
    scene.add("single")
    scene.member("c", group="unknown")
    counted = {each: number for each, number in scene.queue.entities().items() if number}
    assert counted == {("active", "pod"): 1, ("active", "podgroup"): 1}
    scene.pop_group()
    assert scene.queue.entities()["active", "podgroup"] == 0


def test_a_least_number_that_nobody_reaches_only_waits(scene):
    scene.gang(2**31 - 1, "a")
    assert scene.message("a") == TOO_FEW


def test_the_most_important_member_that_is_left_stands_for_a_group_of_the_crd(scene):
    scene.set_group(crd=True, least=1)
    for name, priority in (("a", 0), ("b", 4), ("c", 5), ("d", 5)):
        scene.queue.add(make_pod_info(name, uid=name, labels={POD_GROUP_LABEL: "g"}, priority=priority))
    entity = scene.pop_group()
    scene.fail_round(entity)
    priorities = []
    for name in ("c", "d", "b"):
        scene.queue.delete(name)
        priorities.append(entity.pod_info.priority)
    assert priorities == [5, 4, 0]


def test_members_that_open_their_gates_one_by_one_are_asked_once_each(scene):
    scene.set_group(least=1)
    for number in range(300):
        scene.queue.add(member(f"p{number}", gates=["wait"]))
    for number in range(300):
        scene.queue.update(member(f"p{number}", resource_version="2"))
    assert len(scene.pop_group().members) == 300
