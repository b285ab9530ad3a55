"""Groups that wait share the nodes without what they might evict, and are told what fresh ones would say."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_node, make_pod_info
from tests.group_builders import make_pod_group
from tests.scheduler.group_scene import GroupScene, told

from bayplan.cache.scratch_table import KEPT_SCRATCH_POD_BYTES
from bayplan.scheduler.emptied_nodes import EmptiedNodes, KeptEmptiedNodes
from bayplan.scheduler.pod_group_round import RoundStatus

NODES = 3

PLACES = st.sampled_from([f"n{number}" for number in range(NODES)])
CHANGES = st.one_of(
    st.tuples(st.just("pod"), PLACES, st.integers(1, 2), st.sampled_from([0, 5, 20])),
    st.tuples(st.just("end"), st.integers(0, 20)),
    st.tuples(st.just("label"), st.integers(0, 20)),
    st.tuples(st.just("node"), PLACES, st.sampled_from(["2", "4", "6"])),
    st.tuples(st.just("drop"), PLACES),
    st.tuples(st.just("more"), st.integers(1, 70)),
    st.tuples(st.just("group"), st.sampled_from([None, 0, 20])),
    st.tuples(st.just("no group")),
    st.tuples(st.just("nominate"), PLACES, st.sampled_from([5, 20])),
)


def change(scene, pods, step):
    """Let something happen to the cluster between two rounds."""
    match step:
        case "pod", node, cpu, priority:
            name = f"pod{len(pods)}"
            pods.append(make_pod_info(name, node=node, cpu=str(cpu), priority=priority, group="other"))
            scene.cache.set_pod(pods[-1])
        case "end", number if pods:
            scene.cache.remove_pod(pods.pop(number % len(pods)).uid)
        case "label", number if pods:
            at, old = number % len(pods), pods[number % len(pods)]
            amounts = {"cpu": f"{old.placed.amounts['cpu']}m", "priority": old.priority, "group": "other"}
            pods[at] = make_pod_info(old.name, uid=old.uid, node=old.pod.spec.node_name, labels={"app": "w"}, **amounts)
            scene.cache.set_pod(pods[at])
        case "group", priority:
            scene.groups.set(make_pod_group("other", priority=priority))
        case ("no group",):
            scene.groups.remove(make_pod_group("other").key)
        case _:
            change_nodes(scene, step)


def change_nodes(scene, step):
    match step:
        case "node", name, cpu:
            scene.cache.set_node(make_node(name, cpu=cpu))
        case "drop", name:
            scene.cache.remove_node(name)
        case "more", count:
            for number in range(count):
                scene.cache.set_node(make_node(f"more{number}", cpu="1"))
        case "nominate", node, priority:
            scene.nominator.add(make_pod_info(f"nominated{priority}", cpu="1", priority=priority), node)


def looks(nodes):
    """All that a decision reads of the nodes and of the pods on them, by name."""
    return {
        nodes.names[row]: (
            {uid: pod.pod.metadata.labels for uid, pod in nodes.pods[row].items()},
            {name: column[row] for name, column in {**nodes.allocatable}.items()},
            {name: column[row] for name, column in {**nodes.requested}.items()},
        )
        for row in nodes.rows().tolist()
    }


@settings(max_examples=150)
@given(st.lists(st.lists(CHANGES, min_size=1, max_size=4), max_size=8))
def test_nodes_that_follow_are_as_those_that_are_emptied_anew(batches):
    scene, pods = GroupScene(nodes=NODES), []
    kept = emptied(scene)
    for steps in batches:
        for step in steps:
            change(scene, pods, step)
        anew = followed(emptied(scene))
        assert looks(followed(kept).cache.nodes) == looks(anew.cache.nodes)
        assert kept.is_all == anew.is_all


@settings(max_examples=100)
@given(st.lists(st.tuples(st.lists(CHANGES, max_size=4), st.sampled_from([3, 10]), st.integers(1, 5)), max_size=8))
def test_a_group_is_told_what_nodes_that_were_emptied_for_it_alone_would_say(rounds):
    scene, pods = GroupScene(nodes=NODES), []
    for steps, priority, cpu in rounds:
        for step in steps:
            change(scene, pods, step)
        group = make_pod_group("g", least=2, priority=priority)
        members = scene.queued(str(cpu), str(cpu), priority=priority)
        shared = scene.round(group, members)
        apart = scene.round(group, members, kept=KeptEmptiedNodes(scene.cache, scene.groups, scene.nominator))
        found = shared.run()
        shared.undo()
        expected = apart.run()
        apart.undo()
        assert (found.status, told(found)) == (expected.status, told(expected))
        if found.preemption is not None:
            assert found.preemption.nodes == expected.preemption.nodes
            assert {each.uid for each in found.preemption.victims} == {each.uid for each in expected.preemption.victims}


@pytest.fixture
def scene():
    return GroupScene(nodes=1)


def emptied(scene, priority=10):
    return scene.kept.take(priority, scene.frameworks)


def followed(nodes: EmptiedNodes):
    for _ in nodes.follow():
        pass
    return nodes


def test_what_changed_is_taken_in_without_another_copy(scene):
    first = followed(emptied(scene))
    assert first.is_all
    table = first.cache.nodes
    scene.kept.give_back(first)
    scene.bound("lower", cpu="1", priority=1)
    scene.bound("higher", cpu="2", priority=20)
    second = followed(emptied(scene))
    assert second.cache.nodes is table
    assert not second.is_all
    assert [pod.name for pod in table.pods[table.row("n0")].values()] == ["higher"]
    assert table.requested["cpu"][table.row("n0")] == 2000


def test_nodes_that_are_not_given_back_are_not_used_again(scene):
    assert emptied(scene) is not emptied(scene)


def test_a_profile_that_was_configured_anew_is_asked_anew(scene):
    first = followed(emptied(scene))
    scene.kept.give_back(first)
    scene.frameworks = {**scene.frameworks}
    assert emptied(scene) is not first


def test_few_are_kept_and_none_that_nobody_asked_for_of_late(scene):
    for priority in range(1, 9):
        scene.kept.give_back(followed(emptied(scene, priority)))
    assert len(scene.kept) == 4
    scene.kept.release_unused()
    assert len(scene.kept) == 4
    scene.kept.give_back(followed(emptied(scene, 8)))
    scene.kept.release_unused()
    assert len(scene.kept) == 1


def test_rounds_that_fail_leave_the_kept_nodes_as_they_were(scene):
    scene.bound("lower", cpu="2", priority=1)
    group = make_pod_group(least=3, priority=10)
    texts = set()
    for _ in range(3):
        result = scene.run(group, scene.queued("2", "2", "2", priority=10))
        assert result.status is RoundStatus.UNSCHEDULABLE
        texts.add(result.message)
    (text,) = texts
    assert text.endswith("pod group preemption: minCount (3) cannot be satisfied: 2 scheduled, 0 remaining")
    nodes = emptied(scene).cache.nodes
    assert [len(nodes.pods[row]) for row in nodes.rows()] == [0]


class Behind:
    """A reader of pods that is asked no more: for those entries are kept."""

    read_to = 1

    def take(self, change):
        pass


def test_what_came_and_went_is_held_up_to_a_bound(scene):
    kept, behind = followed(emptied(scene)), Behind()
    kept.cache.nodes.pods_changed.readers.add(behind)
    for number in range(200):
        pod = scene.bound(f"large{number}", cpu="1", priority=20, labels={"l": "x" * 20_000})
        for _ in kept.follow():
            pass
        scene.cache.remove_pod(pod.uid)
    assert 2**20 < kept.cache.nodes.pods_changed.size <= 2 * KEPT_SCRATCH_POD_BYTES
