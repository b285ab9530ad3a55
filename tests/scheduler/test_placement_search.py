"""A round places a group on one set of nodes: of one value of a key, or as few nodes as can be."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_node, make_pod_info
from tests.cache_checks import assert_adds_up, digest
from tests.group_builders import make_pod_group
from tests.scheduler.group_scene import LARGE, GroupScene, nodes_of, told

from bayplan.api.device_objects import DeviceClass, DeviceClassSpec
from bayplan.api.meta_objects import ObjectMeta
from bayplan.cache.group_members import POD_GROUP_LABEL
from bayplan.config.bayplan_args import PlacementChoice, TopologyPlacementGeneratorArgs, WhenUnsatisfiable
from bayplan.config.feature_gates import parse_feature_gates
from bayplan.config.load import default_configuration
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.scheduler.pod_group_round import RoundStatus

RACK = "example.com/rack"
P = "pod group preemption: No preemption victims found for incoming preemptor"
FIRST = "pod group is unschedulable, 0/{} placements are available, first placement status: {}"


def scene_of(racks, *, gate=False, **args):
    """Nodes RACK-0, RACK-1, ... of so many CPUs each, in racks; "" is no rack. Without `gate`, the profile has args."""
    configuration = default_configuration()
    if gate:
        gates = parse_feature_gates(["GenericWorkload=true,TopologyAwareWorkloadScheduling=true"])
        configuration = replace(configuration, feature_gates=gates)
    else:
        (profile,) = configuration.profiles
        given = {"TopologyPlacementGenerator": TopologyPlacementGeneratorArgs(**args)}
        profile = replace(profile, plugin_config=profile.plugin_config | given)
        configuration = replace(configuration, profiles=(profile,))
    scene = GroupScene(nodes=0, configuration=configuration)
    for rack, cpus in racks.items():
        for number, cpu in enumerate(cpus):
            labels = {RACK: rack} if rack else {}
            scene.cache.set_node(make_node(f"{rack}-{number}", cpu=cpu, labels=labels))
    return scene


def fewest(racks, **args):
    return scene_of(racks, choice=PlacementChoice.FEWEST_NODES, **args)


def in_a_rack(least=None):
    return make_pod_group(least=least, topology_key=RACK)


def racks_of(result):
    return {node.split("-")[0] for node in nodes_of(result).values()}


class TestTheKeyOfAGroup:
    def test_all_members_are_on_nodes_of_one_value(self):
        scene = scene_of({"x": (2, 2), "y": (2, 2, 2), "": (9,)}, gate=True)
        result = scene.run(in_a_rack(6), scene.queued(*"111111"))
        assert (result.status, racks_of(result), len(nodes_of(result))) == (RoundStatus.SCHEDULED, {"y"}, 6)
        assert scene.reserving.held == [f"p{number}" for number in range(6)]
        assert_adds_up(scene.cache)

    def test_of_several_values_the_one_with_more_members_on_it_comes_first_and_then_the_fuller_one(self):
        scene = scene_of({"x": (4,), "y": (3,), "z": (2,)}, gate=True)
        assert racks_of(scene.run(in_a_rack(2), scene.queued(*"111"))) == {"y"}

    def test_a_group_that_fits_in_no_value_leaves_nothing_behind_and_is_told_of_one(self):
        scene = scene_of({"x": (2,), "y": (1,), "": (9,)}, gate=True)
        before = digest(scene.cache)
        result = scene.run(in_a_rack(3), scene.queued(*"111"))
        text = FIRST.format(2, "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining")
        assert (result.status, result.message) == (RoundStatus.UNSCHEDULABLE, f"{text}, {P}")
        assert told(result)["p0"] == f"pod group is unschedulable, {text}, {P}"
        assert told(result)["p2"] == "0/1 nodes are available: 1 Insufficient cpu."
        assert (digest(scene.cache), scene.reserving.held) == (before, [])

    def test_a_group_that_is_too_small_is_told_so_before_its_first_member_is_tried(self):
        scene = scene_of({"x": (2,)}, gate=True)
        text = FIRST.format(1, "pod group is unschedulable, minCount (3) cannot be satisfied: 0 scheduled, 1 remaining")
        assert told(scene.run(in_a_rack(3), scene.queued("1"))) == {"p0": text}

    def test_without_a_node_that_has_the_key_there_is_no_placement(self):
        scene = scene_of({"": (4,)}, gate=True)
        result = scene.run(in_a_rack(1), scene.queued("1"))
        assert told(result) == {"p0": "no feasible placements found"}
        assert result.message == f"no feasible placements found, {P}"

    def test_members_that_run_say_which_value_it_is(self):
        scene = scene_of({"x": (9,), "y": (3,)}, gate=True)
        scene.bound("there", group="g", node="y-0")
        assert racks_of(scene.run(in_a_rack(3), scene.queued("1", "1"))) == {"y"}
        assert scene.run(in_a_rack(9), scene.queued("1")).status is RoundStatus.UNSCHEDULABLE

    @pytest.mark.parametrize(
        ("nodes", "text"),
        [
            (("x-0", "y-0"), "more than 1 domain found for pod group: x, y"),
            (("-0",), "no topology domain found for pod default/b0"),
            (("gone",), 'getting node for pod default/b0: nodeinfo not found for node name "gone"'),
        ],
    )
    def test_members_that_run_where_no_group_can_be_completed_are_an_error_for_all(self, nodes, text):
        scene = scene_of({"x": (2,), "y": (2,), "": (2,)}, gate=True)
        for number, node in enumerate(nodes):
            scene.bound(f"b{number}", group="g", node=node)
        result = scene.run(in_a_rack(2), scene.queued("1"))
        assert result.status is RoundStatus.ERROR
        assert told(result) == {"p0": f"cannot determine domain for already scheduled pods: {text}"}

    def test_the_key_means_nothing_without_the_gate(self):
        scene = GroupScene(nodes=2)
        result = scene.run(in_a_rack(2), scene.queued("3", "3"))
        assert set(nodes_of(result).values()) == {"n0", "n1"}

    def test_values_without_enough_room_are_not_tried(self):
        scene = scene_of({f"r{number}": (2,) for number in range(500)} | {"large": (4,)}, gate=True)
        decisions = []
        result = scene.run(in_a_rack(4), scene.queued(*"1111"), decided=decisions.append)
        assert (racks_of(result), len(decisions)) == ({"large"}, 4)

    def test_of_many_values_that_are_alike_one_is_tried(self):
        scene = scene_of({f"r{number}": (4,) for number in range(500)}, gate=True)
        decisions = []
        scene.run(in_a_rack(4), scene.queued(*"1111"), decided=decisions.append)
        assert len(decisions) == 4

    def test_a_rule_that_is_not_of_room_has_the_next_value_tried(self):
        scene = scene_of({"x": (4,), "y": (2, 3)}, gate=True)
        members = scene.queued("1", "1", host_ports=[80])
        assert racks_of(scene.run(in_a_rack(2), members)) == {"y"}

    def test_a_plugin_that_raises_ends_the_search(self):
        scene = scene_of({"x": (4,), "y": (4,)}, gate=True)
        before = digest(scene.cache)
        scene.reserving.answers["p1"] = RuntimeError("broken")
        result = scene.run(in_a_rack(2), scene.queued("1", "1"))
        assert (result.status, result.message) == (
            RoundStatus.ERROR,
            "failed to schedule other pod from a pod group: broken",
        )
        assert (digest(scene.cache), len(scene.reserving.given_back)) == (before, 2)

    def test_a_node_that_takes_the_place_of_another_in_mid_round_is_not_of_its_value(self):
        scene = scene_of({"x": (2, 2)}, gate=True)
        attempt = scene.round(in_a_rack(3), scene.queued("2", "1", "1"))
        attempt.step()
        (full,) = {scene.cache.node_of(pod.uid) for pod in scene.cache.assumed_pods()}
        scene.cache.remove_node("x-1" if full == "x-0" else "x-0")
        scene.cache.set_node(make_node("other", cpu=9))
        assert attempt.run().status is RoundStatus.UNSCHEDULABLE

    def test_a_member_that_is_bound_in_the_middle_of_the_search_is_let_go_of_once(self):
        scene = scene_of({"x": (4,), "y": (2, 3)}, gate=True)
        members = scene.queued("1", "1", host_ports=[80])
        attempt = scene.round(in_a_rack(2), members)
        attempt.step()
        pod = members[1].pod_info
        scene.cache.set_pod(make_pod_info(pod.name, uid=pod.uid, group="g", node="y-0"))
        result = attempt.run()
        assert [each.uid for each in result.skipped] == [pod.uid]


class TestFewestNodes:
    def test_a_gang_takes_as_few_nodes_as_can_be_and_of_these_the_last_is_the_smallest_that_will_do(self):
        scene = fewest({"": (1, 1, 1, 1, 8, 8, 2)})
        result = scene.run(make_pod_group(least=10), scene.queued(*"1" * 10))
        assert len(set(nodes_of(result).values())) == 2
        assert "-6" in nodes_of(result).values()

    def test_where_the_few_will_not_do_all_nodes_are_tried(self):
        scene = fewest({"": (4, 4, 4)})
        result = scene.run(make_pod_group(least=3), scene.queued(*"111", host_ports=[80]))
        assert len(set(nodes_of(result).values())) == 3

    def test_a_gang_that_does_not_fit_is_told_as_much_as_without(self):
        scenes = [fewest({"": (4, 4)}), GroupScene(nodes=2)]
        packed, plain = (told(each.run(make_pod_group(least=3), each.queued("3", "3", "3"))) for each in scenes)
        assert packed == plain

    def test_the_rack_is_taken_that_needs_fewest_nodes_and_then_that_in_which_least_is_left(self):
        scene = fewest({"w": (2, 2, 9), "x": (4,), "y": (5,), "z": (2, 2)}, topology_key=RACK)
        assert racks_of(scene.run(make_pod_group(least=4), scene.queued(*"1111"))) == {"x"}
        assert racks_of(scene.run(make_pod_group(name="h", least=4), scene.queued(*"1111", group="h"))) == {"y"}


class TestTheKeyOfTheProfile:
    def group(self, scene, *cpus, least=None):
        members = scene.queued(*cpus, group=None, labels={POD_GROUP_LABEL: "g"})
        return scene.run(make_pod_group(least=least or len(cpus), crd=True), members)

    def test_a_group_of_the_crd_stands_in_one_value(self):
        scene = scene_of({"x": (1, 1, 1), "y": (1, 1, 1, 1)}, topology_key=RACK)
        assert racks_of(self.group(scene, *"1111")) == {"y"}

    @pytest.mark.parametrize("choice", PlacementChoice)
    def test_one_that_is_too_large_for_any_value_stands_in_as_few_as_can_be(self, choice):
        racks = {"w": (1, 1), "x": (1, 1, 1, 1), "y": (1,), "z": (1, 1, 1, 1)}
        scene = scene_of(racks, topology_key=RACK, choice=choice)
        assert racks_of(self.group(scene, *"11111")) == {"x", "y"}

    def test_nodes_of_no_value_are_taken_last(self):
        scene = scene_of({"x": (1,), "": (1,)}, topology_key=RACK)
        assert racks_of(self.group(scene, *"11")) == {"x", ""}
        assert self.group(scene, LARGE).status is RoundStatus.UNSCHEDULABLE

    def test_one_that_may_not_stand_in_several_waits(self):
        scene = scene_of(
            {"x": (1,), "y": (1,)}, topology_key=RACK, when_unsatisfiable=WhenUnsatisfiable.DO_NOT_SCHEDULE
        )
        result = self.group(scene, *"11")
        verdict = FIRST.format(2, "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining")
        assert result.message == f"{verdict}, pod group preemption: No preemption victims found for incoming preemptor"

    def test_a_late_member_joins_the_others_if_there_is_room(self):
        scene = fewest({"x": (2,), "y": (3,), "z": (9,)}, topology_key=RACK)
        scene.bound("there", cpu="1", labels={POD_GROUP_LABEL: "g"}, node="y-0")
        assert racks_of(self.group(scene, *"11", least=3)) == {"y"}
        late = QueuedPodInfo(make_pod_info("late", cpu="1", labels={POD_GROUP_LABEL: "g"}), 0.0, 9)
        assert racks_of(scene.run(make_pod_group(least=3, crd=True), [late])) == {"x"}

    def test_where_other_rules_keep_it_out_of_any_value_few_of_many_are_tried(self):
        scene = fewest({f"r{number}": (4,) for number in range(500)}, topology_key=RACK)
        members = scene.queued("1", "1", host_ports=[80])
        decisions = []
        assert len(racks_of(scene.run(make_pod_group(least=2), members, decided=decisions.append))) == 2
        assert len(decisions) < 200

    def test_a_cordoned_rack_has_no_room(self):
        scene = fewest({"x": (4,), "y": (5,)}, topology_key=RACK)
        scene.cache.set_node(make_node("x-0", cpu=4, labels={RACK: "x"}, unschedulable=True))
        assert racks_of(self.group(scene, *"1111")) == {"y"}


CPUS = st.lists(st.integers(1, 5), min_size=1, max_size=3)


def plain(cpus, asks, least):
    """What a round without placements comes to on nodes of one value alone: how many members it places, 0 if none."""
    scene = GroupScene(nodes=0)
    for number, cpu in enumerate(cpus):
        scene.cache.set_node(make_node(f"n{number}", cpu=cpu))
    result = scene.run(make_pod_group(least=least), scene.queued(*asks))
    placed = {pod.name for pod in scene.cache.assumed_pods()}
    share = 100 * sum(int(ask) for number, ask in enumerate(asks) if f"p{number}" in placed) // sum(cpus)
    memory = 100 * len(placed) * 200 * 2**20 // (len(cpus) * 32 * 2**30)
    return (len(placed), (share + memory) // 2) if result.status is RoundStatus.SCHEDULED else None


@settings(max_examples=80, deadline=None)
@given(
    racks=st.dictionaries(st.sampled_from("uvwxyz"), CPUS, min_size=1),
    asks=st.lists(st.integers(1, 3), min_size=1, max_size=6),
    least=st.integers(1, 6),
)
def test_the_value_is_the_best_of_those_that_hold_the_group_when_each_is_tried_by_itself(racks, asks, least):
    """The oracle tries every value, as kube-scheduler does, and scores it node by node."""
    scene = scene_of(racks, gate=True)
    result = scene.run(in_a_rack(least), scene.queued(*map(str, asks)))
    wanted = {rack: found for rack, cpus in racks.items() if (found := plain(cpus, [*map(str, asks)], least))}
    if not wanted:
        assert result.status is RoundStatus.UNSCHEDULABLE
        assert scene.cache.sizes().pods == 0
        return
    most = max(pods for pods, _ in wanted.values())
    points = {rack: fit + 100 * pods // most for rack, (pods, fit) in wanted.items()}
    (rack,) = racks_of(result)
    assert points[rack] == max(points.values())
    assert len(nodes_of(result)) == wanted[rack][0] == scene.cache.sizes().pods
    assert_adds_up(scene.cache)


@settings(max_examples=80, deadline=None)
@given(cpus=st.lists(st.integers(0, 6), min_size=1, max_size=6), members=st.integers(1, 12))
def test_no_fewer_nodes_would_hold_a_gang_of_equal_members(cpus, members):
    scene = fewest({"": cpus})
    result = scene.run(make_pod_group(least=members), scene.queued(*"1" * members))
    assert (result.status is RoundStatus.SCHEDULED) == (sum(cpus) >= members)
    nodes = len(set(nodes_of(result).values()))
    assert sum(sorted(cpus, reverse=True)[: max(nodes - 1, 0)]) < members


def test_what_a_class_of_devices_provides_is_no_gap_and_left_to_the_round():
    scene, amounts = GroupScene(), {"example.com/gpu": 9, "example.com/other": 1}
    provided = DeviceClass(ObjectMeta(name="gpu"), DeviceClassSpec(extended_resource_name="example.com/gpu"))
    scene.cache.listers.of(DeviceClass).set(provided)
    members = scene.queued("1", group=None, labels={POD_GROUP_LABEL: "g"})
    result = scene.run(make_pod_group(least=1, crd=True, min_resources=amounts), members)
    assert result.message == f"resource gap: example.com/other 1 where 0 is free, {P}"
    del amounts["example.com/other"]
    result = scene.run(make_pod_group(least=1, crd=True, min_resources=amounts), members)
    assert result.status is RoundStatus.SCHEDULED
