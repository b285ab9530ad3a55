"""A group evicts whom it must, anywhere in the cluster, and nobody where that would not make it whole."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_node
from tests.cache_checks import digest
from tests.group_builders import make_pod_group
from tests.oracle.replay import loaded
from tests.plugins.inter_pod_affinity.affinity_scenes import required, term
from tests.plugins.preemption.worlds import make_budget, minute
from tests.scheduler.group_scene import GroupScene, nodes_of, told

from bayplan.api.meta_objects import parse_time
from bayplan.api.objects import Condition
from bayplan.api.workload_objects import PodDisruptionBudget
from bayplan.cache.group_members import POD_GROUP_LABEL
from bayplan.scheduler.pod_group_round import RoundStatus

P = "pod group preemption: "
CLAIMS = "deallocation and deletion of ResourceClaims completed, "
SHORT = "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"


@pytest.fixture
def scene():
    return GroupScene()


def scene_with(**own):
    args = [{"name": "DefaultPreemption", "args": {"bayplan.io": own}}]
    profile = {"schedulerName": "bayplan", "pluginConfig": args}
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return GroupScene(configuration=loaded(json.dumps({**kind, "profiles": [profile]})))


def preempt(scene, *cpus, least=None, crd=False, **fields):
    """The round of a gang of priority 10 that needs all of these members, or `least`."""
    labels = {"group": None, "labels": {POD_GROUP_LABEL: "g"}} if crd else {}
    group = make_pod_group(least=least or len(cpus), priority=None if crd else 10, crd=crd)
    return scene.run(group, scene.queued(*cpus, priority=10, **labels, **fields))


def low(scene, name, node, cpu="4", **fields):
    return scene.bound(name, node=node, cpu=cpu, **{"priority": 1, **fields})


def victims(result):
    return {pod.name for pod in result.preemption.victims}


def test_a_gang_evicts_no_more_than_it_needs_and_of_those_the_least_important(scene):
    for node in ("n0", "n1"):
        low(scene, f"more-{node}", node, cpu="2", priority=2)
        low(scene, f"less-{node}", node, cpu="2")
    before = digest(scene.cache)
    result = preempt(scene, "2", "2", host_ports=[80])
    assert result.status is RoundStatus.UNSCHEDULABLE
    assert victims(result) == {"less-n0", "less-n1"}
    assert set(result.preemption.nodes.values()) == {"n0", "n1"}
    assert digest(scene.cache) == before
    assert scene.reserving.held == []


def test_who_had_a_place_is_told_of_the_preemption_and_the_others_what_is_missing(scene):
    low(scene, "a", "n0")
    result = preempt(scene, "4", "4")
    text = f"{SHORT}, {P}found a placement for podgroup, preempting 1 victims"
    assert told(result) == {"p0": text, "p1": "0/2 nodes are available: 2 Insufficient cpu."}
    assert result.message == text


def test_nobody_is_evicted_where_the_gang_would_not_fit_even_so(scene):
    low(scene, "a", "n0")
    result = preempt(scene, "4", "4", "4")
    assert (victims(result), result.preemption.nodes) == (set(), {})
    assert result.message.endswith(f"{CLAIMS}{P}minCount (3) cannot be satisfied: 2 scheduled, 0 remaining")


def test_pods_of_equal_priority_stay(scene):
    low(scene, "a", "n0", priority=10)
    result = preempt(scene, "4", "4")
    assert result.message == f"{SHORT}, {P}No preemption victims found for incoming preemptor"


def test_a_gang_that_never_preempts_says_so(scene):
    low(scene, "a", "n0")
    result = preempt(scene, "4", "4", preemption_policy="Never")
    assert result.message == f"{SHORT}, {CLAIMS}{P}not eligible due to preemptionPolicy=Never."


def test_members_beyond_the_least_number_are_nominated_as_far_as_they_fit(scene):
    low(scene, "a", "n0")
    low(scene, "b", "n1")
    result = preempt(scene, "4", "4", "4", least=1)
    assert sorted(result.preemption.nodes.values()) == ["n0", "n1"]
    assert victims(result) == {"a", "b"}


def test_pods_that_a_budget_protects_are_spared_before_more_important_ones(scene):
    scene.cache.listers.of(PodDisruptionBudget).set(make_budget(allowed=0, app="kept"))
    low(scene, "kept", "n0", cpu="2", labels={"app": "kept"})
    low(scene, "free", "n0", cpu="2", priority=5)
    low(scene, "other", "n1", priority=10)
    result = preempt(scene, "1", "1")
    assert victims(result) == {"free"}
    assert result.preemption.violations == 0


def test_under_strict_budgets_nobody_is_evicted_rather_than_one_too_many():
    scene = scene_with(pdbPolicy="Strict")
    scene.cache.listers.of(PodDisruptionBudget).set(make_budget(allowed=1, app="kept"))
    low(scene, "a", "n0", labels={"app": "kept"})
    low(scene, "b", "n1", labels={"app": "kept"})
    result = preempt(scene, "4", "4")
    assert victims(result) == set()
    assert result.message.endswith(f"{P}no victims can be found without violating a PodDisruptionBudget")
    result = preempt(scene, "4")
    assert (len(victims(result)), result.preemption.evicts) == (1, True)


def test_pods_that_have_not_run_long_enough_stay():
    scene = scene_with(minimumRuntimeSeconds=600)
    scene.now = parse_time(minute(15))
    low(scene, "old", "n0", start_time=minute(1))
    low(scene, "young", "n1", start_time=minute(10))
    assert victims(preempt(scene, "4")) == {"old"}
    assert victims(preempt(scene, "4", "4")) == set()


def test_a_gang_that_came_just_now_leaves_an_autoscaler_its_time():
    scene = scene_with(preemptionDelaySeconds=60)
    low(scene, "a", "n0")
    low(scene, "b", "n1")
    scene.now = parse_time(scene.queued("1")[0].pod_info.pod.metadata.creation_timestamp) + 59
    assert "not eligible before preemptionDelaySeconds=60 have passed" in preempt(scene, "4").message
    scene.now += 1
    assert len(victims(preempt(scene, "4"))) == 1


@pytest.mark.parametrize("as_one", [False, True])
def test_a_group_of_disruption_mode_all_goes_as_a_whole(scene, as_one):
    scene.groups.set(make_pod_group("lower", priority=1, evicted_as_one=as_one))
    low(scene, "a", "n0", group="lower")
    low(scene, "b", "n1", group="lower")
    assert len(victims(preempt(scene, "4"))) == (2 if as_one else 1)


@pytest.mark.parametrize(("first", "spared"), [("one", "one"), ("all", "all")])
def test_of_equally_important_pods_of_groups_the_first_on_the_node_is_spared_also_if_its_group_goes_as_one(
    scene, first, spared
):
    scene.groups.set(make_pod_group("all", least=1, priority=1, evicted_as_one=True))
    scene.groups.set(make_pod_group("one", least=1, priority=1))
    for name in (first, *({"one", "all"} - {first})):
        low(scene, name, "n0", cpu="2", group=name)
    low(scene, "other", "n1", priority=10)
    result = preempt(scene, "1", "1")
    assert victims(result) == {"one", "all"} - {spared}


def test_the_priority_of_a_group_counts_and_not_that_of_its_pods(scene):
    scene.groups.set(make_pod_group("other", priority=10))
    low(scene, "a", "n0", group="other")
    low(scene, "b", "n1")
    assert victims(preempt(scene, "4")) == {"b"}


def test_a_group_of_the_crd_preempts_by_its_most_important_member_and_never_its_own_pods(scene):
    low(scene, "worker", "n0", labels={POD_GROUP_LABEL: "g"})
    low(scene, "a", "n1")
    assert victims(preempt(scene, "4", crd=True, least=2)) == {"a"}


def test_a_preemption_under_way_is_waited_for(scene):
    members = scene.queued("4", "4", priority=10)
    nodes = dict(zip((each.uid for each in members), ("n0", "n1"), strict=True))
    for member in members:
        scene.nominator.add(member.pod_info, nodes[member.uid])
    ending = Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    low(scene, "a", "n0", deleting=True, conditions=[ending])
    low(scene, "b", "n1")
    result = scene.run(make_pod_group(least=2, priority=10), members)
    assert result.message.endswith(f"{P}ongoing preemption on nominated nodes")
    assert (result.preemption.nodes, victims(result)) == (nodes, set())


def test_members_keep_no_room_from_each_other_while_one_of_their_victims_is_gone_and_one_ends(scene):
    first, second = members = scene.queued("2", "2", priority=10)
    for member in members:
        scene.nominator.add(member.pod_info, "n0")
    low(scene, "ends", "n0", cpu="2", deleting=True)
    scene.bound("stays", node="n1", cpu="4", priority=20)
    result = scene.run(
        make_pod_group(least=1, priority=10), members, on_placed=lambda uid, _: scene.nominator.delete(uid)
    )
    assert nodes_of(result) == {first.pod_info.name: "n0"}
    # From others the second one keeps its room again.
    assert scene.nominator.counted_pods_for_node("n0") == [second.pod_info]


def test_pods_on_other_nodes_count_where_members_look_at_them():
    scene = GroupScene(nodes=0)
    for number in range(2):
        scene.cache.set_node(make_node(f"n{number}", labels={"zone": "z"}))
    low(scene, "foe", "n0", cpu="1", labels={"app": "web"})
    low(scene, "friend", "n1", cpu="1")
    away = required(term("zone"))
    assert victims(preempt(scene, "1", "1", pod_anti_affinity=away)) == {"foe"}


def test_a_round_that_ends_while_it_is_tried_whom_to_evict_gives_back_what_the_trial_holds(scene):
    for node in ("n0", "n1"):
        low(scene, f"low-{node}", node)
    attempt = scene.round(make_pod_group(least=2, priority=10), scene.queued("4", "4", priority=10))
    while not scene.reserving.held:
        assert attempt.step() is None
    attempt.abandon(RuntimeError("over"))
    assert scene.reserving.held == []


def test_what_the_trial_of_a_large_gang_holds_is_given_back_a_part_at_a_time():
    scene = GroupScene(nodes=300)
    for number in range(300):
        low(scene, f"low-{number}", f"n{number}")
    attempt = scene.round(make_pod_group(least=300, priority=10), scene.queued(*["4"] * 300, priority=10))
    held = [0]
    while (result := attempt.step()) is None:
        held.append(len(scene.reserving.held))
    assert (max(held), scene.reserving.held, len(victims(result))) == (300, [], 300)
    assert max(before - after for before, after in pairwise([*held, 0])) <= 256


AMOUNTS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=12
)


@settings(max_examples=60)
@given(AMOUNTS, st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_exactly_those_end_that_cannot_be_given_back_one_by_one(pods, members):
    """Units that are given back at once are those that would be, one after the other."""
    scene = GroupScene(nodes=4)
    for number, (node, cpu, priority, start) in enumerate(pods):
        row = scene.cache.nodes.row(f"n{node}")
        if sum(pod.placed.amounts["cpu"] for pod in scene.cache.nodes.pods[row].values()) + cpu * 1000 <= 4000:
            fields = {"cpu": str(cpu), "priority": priority, "start_time": minute(start)}
            low(scene, f"v{number}", f"n{node}", **fields)
    result = preempt(scene, *map(str, members))
    if result.status is RoundStatus.SCHEDULED or not result.preemption.nodes:
        return
    free = {f"n{node}": 4 for node in range(4)}
    for member in result.members:
        node = result.preemption.nodes.get(member.queued.uid)
        if node is not None:
            free[node] -= member.queued.pod_info.placed.amounts["cpu"] // 1000
    there = [pod for row in scene.cache.nodes.pods for pod in row.values()]
    there.sort(key=lambda pod: (-pod.priority, pod.pod.status.start_time))
    expected = set()
    for pod in there:
        node, cpu = scene.cache.node_of(pod.uid), pod.placed.amounts["cpu"] // 1000
        if cpu <= free[node]:
            free[node] -= cpu
        else:
            expected.add(pod.name)
    assert victims(result) == expected
