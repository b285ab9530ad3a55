"""What the running scheduler says of a pod that waits with its pod group, the one thing that would change it first."""

import json

import msgspec
import pytest
from tests.builders import make_pod_info
from tests.group_builders import make_pod_group
from tests.live.live_scene import LiveScene

from bayplan.cache.group_members import POD_GROUP_LABEL, GroupSource
from bayplan.cli.explanation_lines import live_lines
from bayplan.live.answers import ExplanationAnswer


def scene_with(*, least=4, exists=True):
    scene = LiveScene()
    scene.node("n0", cpu="4")
    scene.groups.serve(GroupSource.NATIVE)
    if exists:
        scene.groups.set(make_pod_group("g", least=least))
    return scene


async def lines_of(scene, name="p0"):
    return [*live_lines(msgspec.convert(await scene.explain(name), ExplanationAnswer))]


async def first_line(scene, name="p0"):
    return (await lines_of(scene, name))[0]


async def test_a_member_says_how_many_fit_and_what_the_first_without_room_misses():
    scene = scene_with()
    for name in ("p0", "p1", "p2", "p3"):
        scene.pod(name, cpu="2", group="g")
    before = scene.held()
    group = (await scene.explain("p0"))["group"]
    assert (group["least"], group["fit"], group["onNodes"], group["waiting"]) == (4, 2, 0, 4)
    assert group["firstWithout"] == {"namespace": "default", "name": "p2"}
    assert group["missing"]["groups"][0]["causes"][0]["mostFree"] == 0
    assert await first_line(scene) == (
        "default/p0: waits with pod group default/g, of which 2 pods fit and 4 must; default/p2 does not"
        ": NodeResourcesFit: cpu, asked 2000m, most free 0m on n0 (n0)"
    )
    assert scene.held() == before


async def test_members_on_nodes_count_and_those_behind_the_first_without_room_are_tried():
    scene = scene_with()
    scene.cache.set_pod(make_pod_info("b", cpu="1", node="n0", group="g"))
    for name, cpu in (("p0", "9"), ("p1", "1"), ("p2", "1"), ("p3", "9")):
        scene.pod(name, cpu=cpu, group="g")
    group = (await scene.explain("p1"))["group"]
    assert (group["fit"], group["firstWithout"]["name"]) == (3, "p0")
    told = "default/p1: waits with pod group default/g, of which 1 run, 2 more fit and 4 must; default/p0 does not"
    assert (await first_line(scene, "p1")).startswith(told)


def filled_with(scene, **fields):
    scene.groups.set(make_pod_group("g", least=2, priority=10))
    scene.cache.set_pod(make_pod_info("low", cpu="3", node="n0", priority=1, **fields))
    for name in ("p0", "p1"):
        scene.pod(name, cpu="2", group="g", priority=10)
    return scene


async def test_a_member_says_whom_its_group_would_evict_and_not_whom_it_would_by_itself():
    scene = filled_with(scene_with())
    scene.cache.set_pod(make_pod_info("equal", cpu="1", node="n0", priority=10))
    scene.node("n1", cpu="2")
    scene.cache.set_pod(make_pod_info("other", cpu="1", node="n1", priority=1))
    before = scene.held()
    answer = await scene.explain("p0")
    assert {each["name"] for each in answer["group"]["evicts"]} == {"low", "other"}
    assert "preempt" not in answer["message"]
    assert await first_line(scene) == (
        "default/p0: waits with pod group default/g, of which 0 pods fit and 2 must; it would evict default/low and "
        "default/other; default/p0 does not; would help: 1000m less of cpu, on n1"
    )
    assert scene.held() == before


async def test_a_member_says_why_its_group_evicts_nobody():
    scene = filled_with(scene_with())
    scene.cache.set_pod(make_pod_info("equal", cpu="1", node="n0", priority=10))
    group = (await scene.explain("p1"))["group"]
    assert group["evicts"] == []
    text = "pod group preemption: minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
    assert group["preemption"].endswith(text)
    assert any(text in line for line in live_lines(msgspec.convert(await scene.explain("p1"), ExplanationAnswer)))


async def test_a_group_that_is_not_tried_at_all_counts_no_pods_that_fit():
    scene = scene_with()
    scene.groups.serve(GroupSource.CRD)
    scene.groups.set(make_pod_group("x", least=2, crd=True, min_resources={"cpu": "64"}))
    for name in ("p0", "p1"):
        scene.pod(name, cpu="1", labels={POD_GROUP_LABEL: "x"})
    assert (await scene.explain("p0"))["group"]["fit"] is None
    lines = await lines_of(scene)
    text = "resource gap: cpu 64000m where 4000m is free"
    assert lines[0] == f"default/p0: waits with pod group default/x, which is not tried: {text}"
    assert lines[1].startswith("  by itself now: n0")


async def test_a_member_whose_group_is_not_there_says_so():
    scene = scene_with(exists=False)
    scene.pod("p0", group="g")
    assert await first_line(scene) == (
        "default/p0: waits for pod group default/g: there is no such PodGroup of scheduling.k8s.io/v1beta1"
    )


async def test_a_member_of_a_group_with_too_few_pods_says_how_many_are_missing_as_others_may_be_another_schedulers():
    scene = scene_with(least=3)
    scene.pod("p0", group="g")
    assert await first_line(scene) == (
        "default/p0: waits with pod group default/g, which has 1 of 3 pods: 2 more must come, or name this scheduler"
    )


@pytest.mark.parametrize("asked", ["p0", "held"])
async def test_a_member_of_a_group_with_a_gated_pod_names_that_pod(asked):
    scene = scene_with(least=1)
    scene.pod("p0", group="g")
    scene.pod("held", group="g", gates=["team/ready"])
    assert await first_line(scene, asked) == (
        f"default/{asked}: waits with pod group default/g, which the scheduling gates of pod default/held hold back: "
        "team/ready"
    )


async def test_only_the_pod_that_has_gates_is_called_gated():
    scene = scene_with(least=2)
    scene.pod("also", group="g", gates=["x/y"])
    scene.pod("held", group="g", gates=["team/ready"])
    scene.pod("p0", group="g")
    scene.pod("lone", group="none")
    for name in ("p0", "lone"):
        lines = await lines_of(scene, name)
        assert lines[1].startswith("  by itself now: n0")
        assert any(line.startswith("  waits: with its pod group, priority 0") for line in lines)
    lines = await lines_of(scene, "held")
    assert lines[0].endswith("of pod default/held hold back: team/ready")
    assert lines[1].startswith("  without its gate: n0")
    assert any(line.startswith("  waits: gated, priority 0") for line in lines)
    items = json.loads(await scene.inspector.queue_page(0, 10))["items"]
    assert {each["name"]: (each["group"], each["message"]) for each in items} == {
        "also": ("g", "waiting for scheduling gates: [x/y]"),
        "held": ("g", "waiting for scheduling gates: [team/ready]"),
        "p0": ("g", 'waiting for pod "also" of the pod group: waiting for scheduling gates: [x/y]'),
        "lone": ("none", 'waiting for pods\'s pod group "none" to appear in scheduling queue'),
    }


async def test_a_group_that_fits_waits_as_a_pod_does():
    scene = scene_with(least=2)
    for name in ("p0", "p1"):
        scene.pod(name, group="g")
    assert await first_line(scene) == "default/p0: waits to be tried, fits on n0 now"


async def test_a_pod_without_a_group_has_none():
    scene = scene_with()
    scene.pod("p0")
    assert (await scene.explain("p0"))["group"] is None


async def test_the_gang_that_is_tried_before_is_told_once_and_by_its_name():
    scene = scene_with(least=2)
    scene.groups.set(make_pod_group("first", least=2))
    for name, group in (("f0", "first"), ("f1", "first"), ("p0", "g"), ("p1", "g")):
        scene.pod(name, group=group)
    ahead = (await scene.explain("p1"))["ahead"]
    assert [(each["name"], each["group"]) for each in ahead] == [("f0", "first")]
    assert await first_line(scene, "p1") == (
        "default/p1: waits to be tried, fits on n0 now; pod group default/first is ahead"
    )
    scene.pod("single")
    assert [each["group"] for each in (await scene.explain("single"))["ahead"]] == ["first", "g"]


async def test_the_queue_names_the_group_that_a_pod_waits_with():
    scene = scene_with()
    scene.pod("alone")
    scene.pod("p0", group="g")
    items = json.loads(await scene.inspector.queue_page(0, 10))["items"]
    assert {each["name"]: each["group"] for each in items} == {"alone": None, "p0": "g"}
