"""A round places a group of pods together, or leaves everything as it was."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_node, make_pod, make_pod_info
from tests.cache_checks import assert_adds_up, digest
from tests.group_builders import make_pod_group
from tests.scheduler.group_scene import LARGE, GroupScene, nodes_of, rejection, told

from bayplan.api.quantity import QuantityError
from bayplan.cache.group_members import POD_GROUP_LABEL
from bayplan.framework.status import Code
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.scheduler.decision import FitError
from bayplan.scheduler.pod_group_round import RoundStatus

P = "pod group preemption: No preemption victims found for incoming preemptor"
NO_ROOM = "0/2 nodes are available: 2 Insufficient cpu."


@pytest.fixture
def scene():
    return GroupScene()


def test_a_gang_that_fits_is_assumed_and_reserved_as_a_whole(scene):
    result = scene.run(make_pod_group(least=3), scene.queued("3", "3", "1"))
    assert (result.status, result.message) == (RoundStatus.SCHEDULED, "")
    assert nodes_of(result).keys() == {"p0", "p1", "p2"}
    assert {pod.name for pod in scene.cache.assumed_pods()} == {"p0", "p1", "p2"}
    assert scene.reserving.held == ["p0", "p1", "p2"]


def test_each_member_sees_those_placed_before_it(scene):
    result = scene.run(make_pod_group(least=2), scene.queued("1", "1", host_ports=[80]))
    assert set(nodes_of(result).values()) == {"n0", "n1"}


def test_a_gang_too_large_for_the_cluster_leaves_nothing_behind_and_stops_early(scene):
    before = digest(scene.cache)
    result = scene.run(make_pod_group(least=4), scene.queued("4", "4", "4", "4"))
    text = "minCount (4) cannot be satisfied: 2 scheduled, 1 remaining"
    assert (result.status, result.message) == (RoundStatus.UNSCHEDULABLE, f"{text}, {P}")
    had_a_place = f"pod group is unschedulable, {text}, {P}"
    assert told(result) == {"p0": had_a_place, "p1": had_a_place, "p2": NO_ROOM, "p3": text}
    assert digest(scene.cache) == before
    assert scene.reserving.held == []
    assert nodes_of(result) == {}


def test_what_was_reserved_is_given_back_last_first(scene):
    scene.run(make_pod_group(least=4), scene.queued("1", "1", "1", LARGE))
    assert scene.reserving.given_back == ["p2", "p1", "p0"]


def test_a_round_that_cannot_reach_the_least_number_tries_nobody(scene):
    result = scene.run(make_pod_group(least=3), scene.queued("1", "1"))
    text = "pod group is unschedulable, minCount (3) cannot be satisfied: 0 scheduled, 2 remaining"
    assert told(result) == {"p0": text, "p1": text}
    assert result.message == f"{text}, {P}"
    assert scene.reserving.given_back == []


def test_members_over_the_least_number_start_as_far_as_they_fit(scene):
    result = scene.run(make_pod_group(least=2), scene.queued("4", LARGE, "4", "4"))
    assert result.status is RoundStatus.SCHEDULED
    assert nodes_of(result).keys() == {"p0", "p2"}
    assert {name: text for name, text in told(result).items() if text} == {"p1": NO_ROOM, "p3": NO_ROOM}


def test_members_on_nodes_count_whoever_bound_them(scene):
    scene.bound("there", group="g")
    result = scene.run(make_pod_group(least=3), scene.queued("1", "1"))
    assert result.status is RoundStatus.SCHEDULED
    assert len(scene.cache.members.of(make_pod_group().key)) == 3


def test_extra_members_that_do_not_fit_leave_a_running_gang_as_it_is(scene):
    scene.bound("there", group="g")
    result = scene.run(make_pod_group(least=1), scene.queued(LARGE))
    assert (result.status, result.message) == (RoundStatus.UNSCHEDULABLE, f"pod group is unschedulable, {P}")
    assert told(result) == {"p0": NO_ROOM}


def test_a_group_of_basic_policy_starts_with_any_one_pod(scene):
    result = scene.run(make_pod_group(), scene.queued(LARGE, LARGE))
    assert result.message == f"minCount (1) cannot be satisfied: 0 scheduled, 0 remaining, {P}"
    assert scene.run(make_pod_group(), scene.queued(LARGE, "1")).status is RoundStatus.SCHEDULED


@pytest.mark.parametrize(
    ("least", "bound", "asks", "message"),
    [
        (3, 0, "111", ""),
        (3, 3, "9", "pod group is unschedulable"),
        (3, 2, "9", "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"),
        (3, 1, "1199999", ""),
        (5, 1, "1199", "minCount (5) cannot be satisfied: 3 scheduled, 1 remaining"),
        (
            2**31 - 1,
            1,
            "1",
            "pod group is unschedulable, minCount (2147483647) cannot be satisfied: 1 scheduled, 1 remaining",
        ),
    ],
)
def test_the_least_number_is_held_against_who_runs_and_who_is_left(scene, least, bound, asks, message):
    for number in range(bound):
        scene.bound(f"b{number}", group="g")
    result = scene.run(make_pod_group(least=least), scene.queued(*asks))
    assert result.message == (f"{message}, {P}" if message else "")
    assert result.status is (RoundStatus.UNSCHEDULABLE if message else RoundStatus.SCHEDULED)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"scheduler_name": "other"}, '.spec.schedulerName set, got: "other" and "bayplan"'),
        ({"priority": 7}, "priority as the pod group's priority, got 7 and 0"),
        ({"preemption_policy": "Never"}, "preemption policy, got Never and PreemptLowerPriority"),
    ],
)
def test_members_of_a_native_group_that_differ_are_an_error_for_all_also_those_that_run(scene, fields, text):
    scene.bound("there", group="g", **fields)
    result = scene.run(make_pod_group(least=2), scene.queued("1", "1"))
    assert result.status is RoundStatus.ERROR
    assert result.message == f"all pods in a single pod group should have the same {text}"
    assert told(result) == {"p0": result.message, "p1": result.message}
    assert all(each.is_error for each in result.members)


def test_a_pod_without_a_priority_is_of_the_priority_of_a_group_without_one(scene):
    assert scene.run(make_pod_group(least=1, priority=0), scene.queued("1", priority=0)).message == ""
    other = GroupScene()
    assert other.run(make_pod_group(least=1, priority=5), other.queued("1", priority=5)).message == ""


def test_members_of_a_group_of_the_crd_may_differ(scene):
    group = make_pod_group(least=2, crd=True)
    labels = {POD_GROUP_LABEL: "g"}
    scene.bound("launcher", labels=labels, priority=9, scheduler_name="other")
    result = scene.run(group, scene.queued("1", group=None, labels=labels))
    assert result.status is RoundStatus.SCHEDULED
    result = scene.run(make_pod_group(least=9, crd=True), scene.queued("1", group=None, labels=labels))
    assert result.message.endswith(f"2 scheduled, 1 remaining, {P}")


class TestMinResources:
    CRD = {"group": None, "labels": {POD_GROUP_LABEL: "g"}}  # noqa: RUF012  read only

    def group(self, **amounts):
        return make_pod_group(least=1, crd=True, min_resources=amounts)

    def test_a_group_that_asks_for_more_than_all_nodes_have_free_is_not_tried(self, scene):
        scene.bound("other", cpu="3")
        decisions = []
        group = self.group(cpu="6", memory="100Gi", **{"example.com/gpu": 1, "pods": 2})
        result = scene.run(group, scene.queued("1", **self.CRD), decided=decisions.append)
        gap = (
            "resource gap: cpu 6000m where 5000m is free, example.com/gpu 1 where 0 is free, "
            "memory 100Gi where 64Gi is free"
        )
        assert (result.message, told(result), decisions) == (f"{gap}, {P}", {"p0": gap}, [])

    def test_what_its_members_on_nodes_take_counts_as_free(self, scene):
        scene.bound("mine", cpu="3", labels=self.CRD["labels"])
        assert scene.run(self.group(cpu="8", pods=220), scene.queued("1", **self.CRD)).status is RoundStatus.SCHEDULED
        assert scene.run(self.group(pods=221), scene.queued("1", **self.CRD)).message.startswith("resource gap: pods")

    def test_an_amount_that_cannot_be_read_is_named(self, scene):
        with pytest.raises(QuantityError, match=r"spec\.minResources"):
            scene.run(self.group(cpu="many"), scene.queued("1", **self.CRD))


def test_members_that_may_not_preempt_are_told_so(scene):
    result = scene.run(make_pod_group(least=2), scene.queued("1", LARGE, preemption_policy="Never"))
    assert result.message.endswith("pod group preemption: not eligible due to preemptionPolicy=Never.")


def test_no_room_is_made_for_a_single_member(scene):
    scene.bound("low", cpu="4", priority=-5, node="n0")
    result = scene.run(make_pod_group(least=1), scene.queued("5"))
    (member,) = result.members
    assert isinstance(member.fit_error, FitError)
    assert (member.fit_error.post_filter.victims, member.message) == ((), NO_ROOM)


def test_members_that_end_or_are_on_a_node_already_are_skipped(scene):
    ending = QueuedPodInfo(make_pod_info("ending", group="g", deleting=True), 0.0, 0)
    there = QueuedPodInfo(scene.bound("there", group="g"), 0.0, 1)
    result = scene.run(make_pod_group(least=2), [ending, there, *scene.queued("1")])
    assert [each.pod_info.name for each in result.skipped] == ["ending", "there"]
    assert (result.status, nodes_of(result).keys()) == (RoundStatus.SCHEDULED, {"p0"})


def test_without_a_member_left_nothing_is_tried(scene):
    result = scene.run(make_pod_group(least=2), [QueuedPodInfo(scene.bound("there", group="g"), 0.0, 1)])
    assert (result.status, result.members, len(result.skipped)) == (RoundStatus.SKIPPED, (), 1)


def test_a_member_that_is_bound_in_mid_round_counts_and_is_let_go_of(scene):
    members = scene.queued("1", "1", "1")
    attempt = scene.round(make_pod_group(least=3), members)
    assert attempt.step() is None
    pod = members[1].pod_info
    scene.cache.set_pod(make_pod_info(pod.name, uid=pod.uid, group="g", node="n1"))
    assert attempt.step() is None
    result = attempt.step()
    assert (result.status, nodes_of(result).keys()) == (RoundStatus.SCHEDULED, {"p0", "p2"})
    assert [each.uid for each in result.skipped] == [pod.uid]


def test_a_node_that_goes_in_mid_round_takes_no_member_with_it(scene):
    attempt = scene.round(make_pod_group(least=2), scene.queued("1", LARGE))
    attempt.step()
    scene.cache.remove_node("n0")
    scene.cache.remove_node("n1")
    assert attempt.run().status is RoundStatus.UNSCHEDULABLE
    assert scene.cache.sizes().pods == 0
    assert_adds_up(scene.cache)


def test_a_plugin_that_raises_fails_the_round_and_everything_is_given_back(scene):
    scene.reserving.answers["p1"] = RuntimeError("broken")
    before = digest(scene.cache)
    result = scene.run(make_pod_group(least=3), scene.queued("1", "1", "1"))
    other = "failed to schedule other pod from a pod group: broken"
    assert (result.status, result.message) == (RoundStatus.ERROR, other)
    assert told(result) == {"p0": other, "p1": "broken", "p2": other}
    assert [each.exception for each in result.members][1] is scene.reserving.answers["p1"]
    assert (digest(scene.cache), scene.reserving.held) == (before, [])


def test_a_pod_whose_requests_cannot_be_read_fails_the_round(scene):
    result = scene.run(make_pod_group(least=2), scene.queued("1", "many"))
    assert result.status is RoundStatus.ERROR
    assert result.message.startswith("failed to schedule other pod from a pod group: ")
    assert scene.cache.sizes().pods == 0


def test_a_reserve_plugin_that_rejects_a_member_has_it_passed_over(scene):
    scene.reserving.answers["p0"] = rejection("taken", code=Code.UNSCHEDULABLE)
    result = scene.run(make_pod_group(least=1), scene.queued("1", "1"))
    assert nodes_of(result).keys() == {"p1"}
    assert told(result)["p0"] == "0/1 nodes are available: 1 taken."
    assert result.members[0].fit_error.diagnosis.rejector_plugins == {"Reserving"}


def test_a_reserve_plugin_that_says_error_fails_the_round(scene):
    scene.reserving.answers["p0"] = rejection("torn", code=Code.ERROR)
    result = scene.run(make_pod_group(least=1), scene.queued("1", "1"))
    assert result.status is RoundStatus.ERROR
    assert "torn" in told(result)["p0"]
    assert scene.cache.sizes().pods == 0


def test_who_places_hears_of_each_member_and_of_each_decision(scene):
    placed, decisions = [], []
    scene.run(
        make_pod_group(least=1),
        scene.queued("1", LARGE),
        on_placed=lambda uid, node: placed.append(node),
        decided=decisions.append,
    )
    assert len(placed) == 1
    assert [isinstance(each.outcome, FitError) for each in decisions] == [False, True]


AMOUNTS = st.lists(st.integers(1, 6), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(nodes=st.lists(st.integers(1, 6), min_size=1, max_size=4), asks=AMOUNTS, least=st.integers(1, 9))
def test_a_round_does_what_placing_pods_one_by_one_would(nodes, asks, least):
    """The oracle counts free CPUs: who was passed over fitted nowhere, and who was placed fitted where it stands."""
    scene = GroupScene(nodes=0)
    for number, cpu in enumerate(nodes):
        scene.cache.set_node(make_node(f"n{number}", cpu=cpu))
    chosen = []
    result = scene.run(
        make_pod_group(least=least),
        scene.queued(*map(str, asks)),
        decided=lambda decision: chosen.append(getattr(decision.outcome, "node_name", None)),
    )
    free = dict(enumerate(nodes))
    scheduled = 0
    for number, (ask, node) in enumerate(zip(asks, chosen, strict=False), 1):
        if node is None or isinstance(node, FitError):
            assert max(free.values()) < ask
        else:
            row = int(node[1:])
            assert free[row] >= ask
            free[row] -= ask
            scheduled += 1
        ends_early = scheduled + len(asks) - number < least
        assert (len(chosen) == number) == (ends_early or number == len(asks))
        if ends_early:
            break
    is_placed = least <= scheduled
    assert result.status is (RoundStatus.SCHEDULED if is_placed else RoundStatus.UNSCHEDULABLE)
    assert len(nodes_of(result)) == (scheduled if is_placed else 0)
    assert scene.cache.sizes().pods == len(nodes_of(result))
    assert_adds_up(scene.cache)


def test_a_pod_of_the_builders_names_no_group_unless_told():
    assert make_pod().spec.scheduling_group is None
