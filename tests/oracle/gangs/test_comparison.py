"""What counts as the same: who runs in one recorded run, and texts of any of them."""

import pytest
from tests.oracle.gangs.comparison import DIFFERENT, EQUAL, TIE, compare
from tests.oracle.gangs.parts import gang, rooms, scenario
from tests.oracle.gangs.recording import GroupState, Outcome, PodState

SCENARIO = scenario("two", "two gangs and room for one", rooms(2), gang("a", 2, 2), gang("b", 2, 2))
WAITS = PodState(status="False", reason="Unschedulable", message="no room", events=("no room",))
RUNS = PodState(node="n1")
SCHEDULED = GroupState("True", "Scheduled", "", was_true=True)
UNSCHEDULABLE = GroupState("False", "Unschedulable", "no room")


def outcome(*bound: str, **groups: GroupState) -> Outcome:
    return Outcome({name: RUNS if name in bound else WAITS for name in ("a1", "a2", "b1", "b2")}, groups)


A, B = (outcome("a1", "a2"),), (outcome("b1", "b2"),)


def test_the_same_outcome_is_equal_on_whichever_node_it_is():
    elsewhere = Outcome({**A[0].pods, "a1": PodState(node="n2")}, {})
    assert compare(SCENARIO, (A,), (elsewhere,)).kind == EQUAL


def test_a_node_counts_where_the_rules_leave_one_only():
    placed = scenario("placed", "one node", rooms(2), gang("a", 2, 2), places=True)
    elsewhere = Outcome({**A[0].pods, "a1": PodState(node="n2")}, {})
    assert compare(placed, (A,), (A[0],)).kind == EQUAL
    assert compare(placed, (A,), (elsewhere,)).kind == DIFFERENT


def test_either_of_two_recorded_runs_is_a_tie_and_halves_of_both_are_a_difference():
    assert compare(SCENARIO, (A, B), B).kind == TIE
    half = compare(SCENARIO, (A, B), (outcome("a1", "b1"),))
    assert half.kind == DIFFERENT
    assert half.lines == ("rest 1: bound are a1, b1, wanted a1, a2 or b1, b2",)


def test_another_text_is_a_difference_in_condition_and_event():
    other = PodState(status="False", reason="Unschedulable", message="no cpu", events=("no cpu",))
    lines = compare(SCENARIO, (A,), (Outcome({**A[0].pods, "b1": other}, {}),)).lines
    assert [line.split(": ")[0].split(" has")[0] for line in lines] == ["rest 1 pod b1", "events of pod b1"]


def test_a_text_of_the_condition_may_be_an_event_as_well():
    changed = PodState(status="False", reason="Unschedulable", message="no cpu", events=("no room",))
    told = PodState(status="False", reason="Unschedulable", message="no cpu", events=("no cpu", "no room"))
    recorded = (Outcome({"b1": changed}, {}),)
    assert compare(SCENARIO, (recorded,), (Outcome({"b1": told}, {}),)).kind == EQUAL


def test_events_that_are_missing_are_a_difference():
    silent = PodState(status="False", reason="Unschedulable", message="no room")
    assert compare(SCENARIO, (A,), (Outcome({**A[0].pods, "b1": silent}, {}),)).kind == DIFFERENT


def test_a_pod_that_is_gone_is_a_difference():
    pods = {name: pod for name, pod in A[0].pods.items() if name != "b2"}
    assert compare(SCENARIO, (A,), (Outcome(pods, {}),)).lines[0].startswith("rest 1 pod b2 has ('gone',)")


@pytest.mark.parametrize(
    ("recorded", "found", "kind"),
    [
        (SCHEDULED, SCHEDULED, EQUAL),
        (UNSCHEDULABLE, UNSCHEDULABLE, EQUAL),
        (SCHEDULED, UNSCHEDULABLE, DIFFERENT),
        (GroupState("False", "Unschedulable", "no room", was_true=True), SCHEDULED, TIE),
        (GroupState("False", "Unschedulable", "no room", was_true=True), UNSCHEDULABLE, DIFFERENT),
        (GroupState("True", "Scheduled", "no room", was_true=True), SCHEDULED, TIE),
        (UNSCHEDULABLE, GroupState("False", "Unschedulable", "no cpu"), DIFFERENT),
        (UNSCHEDULABLE, GroupState(), DIFFERENT),
    ],
)
def test_a_condition_that_was_true_stays_true(recorded, found, kind):
    assert compare(SCENARIO, ((outcome(a=recorded),),), (outcome(a=found),)).kind == kind


def test_an_error_of_kube_schedulers_own_may_be_any_text_but_not_success():
    text = 'error in "DynamicResources" PodGroupPostFilter plugins: not found'
    failed = PodState(status="False", reason="SchedulerError", message=text, events=(text,))
    recorded = ((Outcome({"a1": failed}, {"a": GroupState("False", "SchedulerError", text)}),),)
    assert compare(SCENARIO, recorded, (Outcome({"a1": WAITS}, {"a": UNSCHEDULABLE}),)).kind == TIE
    assert compare(SCENARIO, recorded, (Outcome({"a1": RUNS}, {"a": SCHEDULED}),)).kind == DIFFERENT
