from dataclasses import replace

import pytest
from tests.builders import make_node, make_pod

from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.config.load import default_configuration
from bayplan.framework.interface import PostFilterResult
from bayplan.framework.status import Code, Status
from bayplan.plugins.registry import build_frameworks
from bayplan.scheduler.cycle import FitError, Placement, SchedulingCycle


class PostFilter:
    """Answers as told and remembers what it was shown."""

    def __init__(self, name, code, *reasons, nominated=None, victims=()):
        self.name = name
        self.result = PostFilterResult(Status(code, reasons), nominated, victims)
        self.seen = []

    def post_filter(self, state, pod, nodes, rejections):
        self.seen.append({nodes.names[row]: code for row, code in zip(rejections.rows, rejections.codes, strict=True)})
        return self.result


class Scene:
    def __init__(self, *post_filters):
        self.table = NodeTable()
        (self.framework,) = build_frameworks(default_configuration(), self.table).values()
        self.framework.post_filters = post_filters
        self.cycle = SchedulingCycle(self.table)

    def schedule(self, **fields):
        return self.cycle.schedule(PodInfo(make_pod(**fields)), self.framework)


def no(name="First", code=Code.UNSCHEDULABLE, reason="no claims"):
    return PostFilter(name, code, reason)


def yes(victims=()):
    return PostFilter("Preemption", Code.SUCCESS, nominated="n1", victims=victims)


def test_a_pod_that_fits_asks_no_post_filter():
    first = yes()
    scene = Scene(first)
    scene.table.set_node(make_node("n1"))
    assert isinstance(scene.schedule(), Placement)
    assert first.seen == []


def test_post_filters_see_every_node_with_the_code_it_was_rejected_with():
    first = no()
    scene = Scene(first)
    scene.table.set_node(make_node("small", cpu="1"))
    scene.table.set_node(make_node("full", cpu="3"))
    scene.table.set_node(make_node("tainted", taints=["x:NoSchedule"]))
    scene.table.add_pod(PodInfo(make_pod(cpu="2")), "full")
    scene.schedule(cpu="2")
    assert first.seen == [
        {
            "small": Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "full": Code.UNSCHEDULABLE,
            "tainted": Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        }
    ]


def test_the_reasons_of_all_post_filters_end_the_message():
    second = no("Second", Code.UNSCHEDULABLE, "preemption: not eligible.")
    scene = Scene(no(), second)
    scene.table.set_node(make_node("n1", cpu="1"))
    outcome = scene.schedule(cpu="2")
    assert outcome.message == ("0/1 nodes are available: 1 Insufficient cpu. no claims, preemption: not eligible.")
    assert (outcome.nominated_node_name, outcome.victims) == (None, ())


def test_a_nomination_ends_the_search_and_leaves_the_message_plain():
    victim = PodInfo(make_pod("victim"))
    last = no("Last")
    scene = Scene(no(), yes((victim,)), last)
    scene.table.set_node(make_node("n1", cpu="1"))
    outcome = scene.schedule(cpu="2")
    assert isinstance(outcome, FitError)
    assert (outcome.nominated_node_name, outcome.victims) == ("n1", (victim,))
    assert outcome.message == "0/1 nodes are available: 1 Insufficient cpu."
    assert last.seen == []


@pytest.mark.parametrize("code", [Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.ERROR])
def test_a_final_no_ends_the_search_and_stands_alone(code):
    last = yes()
    scene = Scene(no(), no("Second", code, "not found"), last)
    scene.table.set_node(make_node("n1", cpu="1"))
    assert scene.schedule(cpu="2").message == "0/1 nodes are available: 1 Insufficient cpu. not found"
    assert last.seen == []


def test_the_soonest_time_any_post_filter_asks_for_is_told():
    first, second, third = no(), no("Second"), no("Third")
    scene = Scene(first, second, third)
    scene.table.set_node(make_node("n1", cpu="1"))
    assert scene.schedule(cpu="2").retry_after is None
    first.result = replace(first.result, retry_after=9.0)
    third.result = replace(third.result, retry_after=5.0)
    assert scene.schedule(cpu="2").retry_after == 5.0


def test_without_nodes_there_is_nothing_to_make_room_on():
    first = yes()
    scene = Scene(first)
    assert scene.schedule().message == "no nodes available to schedule pods"
    assert first.seen == []


def test_who_rejected_the_pod_is_told_whatever_the_post_filters_say():
    scene = Scene(no())
    scene.table.set_node(make_node("n1", cpu="1"))
    assert scene.schedule(cpu="2").diagnosis.rejector_plugins == {"NodeResourcesFit"}
