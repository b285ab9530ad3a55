from dataclasses import replace

import pytest
from tests.builders import make_node, make_pod, make_pod_info
from tests.plugins.preemption.worlds import World

from bayplan.framework.interface import PostFilterResult
from bayplan.framework.status import Code, Status
from bayplan.scheduler.decision import FitError, Placement


class PostFilter:
    """Answers as told and remembers what it was shown."""

    def __init__(self, name, code, *reasons, nominated=None, victims=()):
        self.name = name
        self.result = PostFilterResult(Status(code, reasons), nominated, victims)
        self.seen = []

    def post_filter(self, state, pod, nodes, rejections):
        self.seen.append({nodes.names[row]: code for row, code in zip(rejections.rows, rejections.codes, strict=True)})
        return self.result


def no(name="First", code=Code.UNSCHEDULABLE, reason="no claims"):
    return PostFilter(name, code, reason)


def world(*post_filters, nodes=1):
    """A cluster of `nodes` nodes, each too small for the pod LARGE."""
    made = World(*(make_node(f"n{number}", cpu="1") for number in range(1, nodes + 1)))
    made.framework.post_filters = post_filters
    return made


def yes(victims=()):
    return PostFilter("Preemption", Code.SUCCESS, nominated="n1", victims=victims)


LARGE = make_pod(cpu="2")


def test_a_pod_that_fits_asks_no_post_filter():
    first = yes()
    assert isinstance(world(first).schedule(make_pod()), Placement)
    assert first.seen == []


def test_post_filters_see_every_node_with_the_code_it_was_rejected_with():
    first = no()
    scene = world(first)
    scene.add(make_node("full", cpu="3"), make_node("tainted", taints=["x:NoSchedule"]))
    scene.add(make_pod(cpu="2", node="full"))
    scene.schedule(LARGE)
    unresolvable = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert first.seen == [{"n1": unresolvable, "full": Code.UNSCHEDULABLE, "tainted": unresolvable}]


def test_the_reasons_of_all_post_filters_end_the_message():
    outcome = world(no(), no("Second", reason="preemption: not eligible.")).schedule(LARGE)
    assert outcome.message == "0/1 nodes are available: 1 Insufficient cpu. no claims, preemption: not eligible."
    assert (outcome.post_filter.nominated_node_name, outcome.post_filter.victims) == (None, ())
    assert outcome.diagnosis.rejector_plugins == {"NodeResourcesFit"}


def test_a_nomination_ends_the_search_and_says_only_what_its_plugin_says():
    victim, last = make_pod_info("victim"), no("Last")
    outcome = world(no(), yes((victim,)), last).schedule(LARGE)
    assert isinstance(outcome, FitError)
    assert (outcome.post_filter.nominated_node_name, outcome.post_filter.victims) == ("n1", (victim,))
    assert outcome.message == "0/1 nodes are available: 1 Insufficient cpu."
    assert last.seen == []


@pytest.mark.parametrize("code", [Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.ERROR])
def test_a_final_no_ends_the_search_and_stands_alone(code):
    last = yes()
    outcome = world(no(), no("Second", code, "not found"), last).schedule(LARGE)
    assert outcome.message == "0/1 nodes are available: 1 Insufficient cpu. not found"
    assert last.seen == []


def test_the_last_word_about_an_earlier_nomination_counts():
    def outcome(*post_filters):
        return world(*post_filters).schedule(LARGE).post_filter.nominated_node_name

    unresolvable = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    cleared = PostFilter("Clears", Code.UNSCHEDULABLE, "x", nominated="")
    assert outcome(cleared, no()) == ""
    assert outcome(cleared, no("Last", unresolvable)) is None
    assert outcome(no(), PostFilter("Last", unresolvable, "x", nominated="")) == ""
    assert outcome(cleared, PostFilter("Fails", Code.ERROR, "x", nominated="")) is None


def test_without_post_filters_an_earlier_nomination_is_cleared():
    assert world().schedule(LARGE).post_filter.nominated_node_name == ""


def test_the_soonest_time_any_post_filter_asks_for_is_told():
    first, second, third = no(), no("Second"), no("Third")
    scene = world(first, second, third)
    assert scene.schedule(LARGE).post_filter.retry_after is None
    first.result = replace(first.result, retry_after=9.0)
    third.result = replace(third.result, retry_after=5.0)
    assert scene.schedule(LARGE).post_filter.retry_after == 5.0


def test_without_nodes_there_is_nothing_to_make_room_on():
    first = yes()
    outcome = world(first, nodes=0).schedule(LARGE)
    assert outcome.message == "no nodes available to schedule pods"
    assert outcome.post_filter.nominated_node_name == "", "an earlier nomination is cleared"
    assert first.seen == []
