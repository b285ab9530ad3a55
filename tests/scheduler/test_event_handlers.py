import msgspec
import pytest
from tests.builders import make_node, make_pod, make_pod_info
from tests.cache_checks import assert_adds_up
from tests.scheduler.handler_scene import Scene

from bayplan.api.objects import Node, NodeCondition, ObjectMeta
from bayplan.api.storage_objects import StorageClass
from bayplan.api.workload_objects import ReplicaSet
from bayplan.cache.pod_info import PodInfo
from bayplan.scheduler.event_handlers import ObservedHandler, node_changes


@pytest.fixture
def scene():
    return Scene()


def condition_flip(node, status):
    conditions = [NodeCondition(type="Ready", status=status)]
    return msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, conditions=conditions))


def test_a_new_node_is_counted_and_told(scene):
    node = make_node("b")
    scene.nodes.on_add(node)
    assert scene.cache.has_node("b")
    assert scene.queue.events == [("NodeAdd", None, node)]
    assert scene.wakes == 2


NODE = make_node("a", taints=["x:NoSchedule"], labels={"zone": "1"})


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (make_node("a", taints=["x:NoSchedule"], labels={"zone": "1"}), []),
        (make_node("a", cpu="8", taints=["x:NoSchedule"], labels={"zone": "1"}), ["NodeUpdateNodeAllocatable"]),
        (make_node("a", taints=["x:NoSchedule"], labels={"zone": "2"}), ["NodeUpdateNodeLabel"]),
        (make_node("a", labels={"zone": "1"}), ["NodeUpdateNodeTaint"]),
        (condition_flip(NODE, "False"), ["NodeUpdateNodeCondition"]),
        (make_node("a", taints=["x:NoSchedule"], labels={"zone": "1"}, unschedulable=True), []),
        (make_node("a", taints=["x:NoSchedule"], labels={"zone": "1"}, images={"i": 1}), []),
        (
            condition_flip(make_node("a", cpu="8", labels={"zone": "2"}), "False"),
            [
                "NodeUpdateNodeAllocatable",
                "NodeUpdateNodeLabel",
                "NodeUpdateNodeTaint",
                "NodeUpdateNodeCondition",
            ],
        ),
    ],
    ids=["nothing", "allocatable", "labels", "taints", "condition", "cordon", "images", "all"],
)
def test_a_changed_node_is_told_once_per_kind_of_change(scene, new, expected):
    scene.nodes.on_update(NODE, new)
    assert all((old, changed) == (NODE, new) for _, old, changed in scene.queue.events)
    assert scene.queue.labels() == expected
    assert scene.cache.nodes.nodes[scene.cache.nodes.row("a")] is new


def test_an_uncordoned_node_counts_as_a_change_of_taints(scene):
    scene.nodes.on_update(make_node("a", unschedulable=True), make_node("a"))
    assert scene.queue.labels() == ["NodeUpdateNodeTaint"]


def test_a_heartbeat_is_no_change(scene):
    def beat(time):
        conditions = [{"type": "Ready", "status": "True", "reason": time, "lastHeartbeatTime": time}]
        return msgspec.convert({"metadata": {"name": "a"}, "status": {"conditions": conditions}}, Node)

    assert node_changes(beat("2026-01-01T00:00:00Z"), beat("2026-01-01T00:00:10Z")) == []


def test_a_node_that_goes_is_told_and_its_pods_stay_counted(scene):
    scene.nodes.on_add(make_node("another"))
    scene.assigned.on_add(make_pod(node="a", cpu="1"))
    scene.queue.labels()
    node = make_node("a")
    scene.nodes.on_delete(node)
    assert not scene.cache.has_node("a")
    assert scene.queue.events == [("NodeDelete", node, None)]
    assert scene.cpu() == 1000


def test_a_node_that_cannot_be_read_is_no_candidate_and_is_new_once_it_can(scene):
    good, bad = make_node("a"), make_node("a", cpu="many")
    scene.nodes.on_update(good, bad)
    assert not scene.cache.has_node("a")
    assert scene.observer.left_out == ["Node"]
    assert scene.queue.labels() == []
    scene.nodes.on_update(bad, good)
    assert scene.cache.has_node("a")
    assert scene.queue.labels() == ["NodeAdd"]


def test_a_new_node_that_cannot_be_read_is_left_out(scene):
    scene.nodes.on_add(make_node("b", memory="-"))
    assert not scene.cache.has_node("b")
    assert (scene.observer.left_out, scene.queue.labels()) == (["Node"], [])


def test_a_pod_on_a_node_is_counted_and_told(scene):
    pod = make_pod(node="a", cpu="1")
    scene.assigned.on_add(pod)
    assert scene.cpu() == 1000
    ((label, old, new),) = scene.queue.events
    assert (label, old, new.pod) == ("AssignedPodAdd", None, pod)


def test_a_pod_bound_by_somebody_else_leaves_the_queue(scene):
    scene.pending.changed(make_pod(uid="u"))
    scene.assigned.on_add(make_pod(uid="u", node="a"))
    assert scene.queue.get("u") is None


def test_the_confirmation_of_an_assumed_pod_changes_no_number_and_leaves_it_in_flight(scene):
    scene.pending.changed(make_pod(uid="u", cpu="1"))
    queued = scene.queue.pop()
    scene.cache.assume_pod(queued.pod_info, "a")
    before = scene.cache.nodes.usage_changed.position
    scene.assigned.on_add(make_pod(uid="u", cpu="1", node="a"))
    assert scene.cache.nodes.usage_changed.position == before
    assert scene.cache.confirmed_node("u") == "a"
    assert scene.queue.get("u") is queued
    assert scene.queue.labels() == ["AssignedPodAdd"]


def test_new_labels_of_a_placed_pod_are_told(scene):
    old, new = make_pod(uid="u", node="a"), make_pod(uid="u", node="a", labels={"x": "y"})
    scene.assigned.on_add(old)
    scene.queue.labels()
    scene.assigned.on_update(old, new)
    assert scene.queue.labels() == ["AssignedPodUpdatePodLabel"]


@pytest.mark.parametrize(("cpu", "expected"), [("500m", ["AssignedPodUpdatePodScaleDown"]), ("2", [])])
def test_a_placed_pod_that_shrinks_is_told_and_one_that_grows_is_not(scene, cpu, expected):
    old, new = make_pod(uid="u", node="a", cpu="1"), make_pod(uid="u", node="a", cpu=cpu)
    scene.assigned.on_add(old)
    scene.queue.labels()
    scene.assigned.on_update(old, new)
    assert scene.queue.labels() == expected
    assert scene.cpu() == PodInfo(new).placed.amounts["cpu"]


def test_a_status_change_of_a_placed_pod_is_told_to_nobody(scene):
    old, new = make_pod(uid="u", node="a"), make_pod(uid="u", node="a", phase="Pending")
    scene.assigned.on_add(old)
    scene.queue.labels()
    wakes = scene.wakes
    scene.assigned.on_update(old, new)
    assert (scene.queue.labels(), scene.wakes) == ([], wakes)


def test_a_pod_that_goes_gives_its_room_back_and_is_told(scene):
    pod = make_pod(uid="u", node="a", cpu="1")
    scene.assigned.on_add(pod)
    scene.queue.labels()
    scene.assigned.on_delete(pod)
    assert (scene.cpu(), scene.gone) == (0, ["u"])
    ((label, old, new),) = scene.queue.events
    assert (label, old.pod, new) == ("AssignedPodDelete", pod, None)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_ends_is_a_pod_that_goes(scene, phase):
    pod, ended = make_pod(uid="u", node="a", cpu="1"), make_pod(uid="u", node="a", cpu="1", phase=phase)
    scene.assigned.on_add(pod)
    scene.queue.labels()
    scene.assigned.on_update(pod, ended)
    assert (scene.cpu(), scene.queue.labels(), scene.gone) == (0, ["AssignedPodDelete"], ["u"])


def test_an_assumed_pod_that_ended_before_it_was_seen_gives_its_room_back(scene):
    scene.cache.assume_pod(make_pod_info(uid="u", cpu="1"), "a")
    scene.assigned.on_add(make_pod(uid="u", cpu="1", node="a", phase="Failed"))
    assert (scene.cpu(), scene.queue.labels()) == (0, ["AssignedPodDelete"])


def test_a_placed_pod_that_cannot_be_read_is_reported_and_keeps_its_last_size(scene):
    old, bad = make_pod(uid="u", node="a", cpu="1"), make_pod(uid="u", node="a", cpu="many")
    scene.assigned.on_add(old)
    scene.queue.labels()
    scene.assigned.on_update(old, bad)
    assert (scene.cpu(), scene.observer.left_out, scene.queue.labels()) == (1000, ["Pod"], [])
    scene.assigned.on_delete(bad)
    assert (scene.cpu(), scene.queue.labels()) == (0, ["AssignedPodDelete"])


def test_the_same_event_twice_changes_nothing(scene):
    pod, node = make_pod(uid="u", node="a", cpu="1"), make_node("a")
    waiting = make_pod(uid="w")
    for _ in range(2):
        scene.nodes.on_add(node)
        scene.assigned.on_add(pod)
        scene.pending.changed(waiting)
    assert_adds_up(scene.cache)
    assert (scene.cpu(), scene.cache.sizes().pods, scene.queue.uids()) == (1000, 1, {"w"})
    for _ in range(2):
        scene.assigned.on_delete(pod)
        scene.pending.gone("w")
        scene.nodes.on_delete(node)
    assert_adds_up(scene.cache)
    assert (scene.cache.sizes().pods, scene.queue.uids()) == (0, set())


def test_a_pod_that_is_said_to_be_gone_is_gone_once_whatever_the_watch_still_tells(scene):
    pod = make_pod(uid="u", node="a", cpu="1")
    scene.assigned.on_add(pod)
    scene.queue.labels()
    scene.assigned.ended("u")
    scene.assigned.on_update(pod, make_pod(uid="u", node="a", cpu="1", resource_version="2"))
    scene.assigned.on_delete(pod)
    assert (scene.cpu(), scene.queue.labels(), scene.gone) == (0, ["AssignedPodDelete"], ["u"])
    scene.assigned.on_add(pod)
    assert scene.cpu() == 1000


def test_the_end_of_a_pod_that_the_watch_has_not_shown_is_the_watchs_to_tell(scene):
    scene.cache.assume_pod(make_pod_info(uid="u", cpu="1"), "a")
    scene.assigned.ended("u")
    scene.assigned.ended("unknown")
    assert (scene.cpu(), scene.gone) == (1000, [])


def test_every_event_handled_is_told_with_its_resource(scene):
    handler = ObservedHandler(scene.nodes, "Node", scene.observer)
    node = make_node("b")
    handler.on_add(node)
    handler.on_update(node, make_node("b", cpu="9"))
    handler.on_delete(node)
    handler.on_synced()
    assert scene.observer.handled == ["NodeAdd", "NodeUpdate", "NodeDelete"]
    assert scene.queue.labels() == ["NodeAdd", "NodeUpdateNodeAllocatable", "NodeDelete"]


def test_a_lister_is_kept_and_each_change_of_its_kind_told(scene):
    events, lister = scene.events_of(StorageClass), scene.listers.of(StorageClass)
    old, new = (StorageClass(metadata=ObjectMeta(name="fast", resource_version=str(i))) for i in range(2))
    events.on_add(old)
    assert (lister.get("fast"), lister.synced) == (old, False)
    events.on_synced()
    assert lister.synced
    events.on_update(old, new)
    assert lister.get("fast") is new
    events.on_delete(new)
    assert lister.get("fast") is None
    assert scene.queue.events == [
        ("StorageClassAdd", None, old),
        ("StorageClassUpdate", old, new),
        ("StorageClassDelete", new, None),
    ]
    assert scene.wakes == 4


def test_the_lister_is_up_to_date_when_the_hints_are_asked(scene):
    lister, seen = scene.listers.of(StorageClass), []
    scene.queue.move_all = lambda event, old, new: seen.append(len(lister))
    events, obj = scene.events_of(StorageClass), StorageClass(metadata=ObjectMeta(name="fast"))
    events.on_add(obj)
    events.on_delete(obj)
    assert seen == [1, 0]


def test_a_kind_that_no_plugin_can_wait_for_wakes_nobody(scene):
    obj = ReplicaSet(metadata=ObjectMeta(name="web", namespace="default"))
    events, wakes = scene.events_of(ReplicaSet), scene.wakes
    events.on_add(obj)
    events.on_update(obj, obj)
    assert scene.listers.of(ReplicaSet).get("default/web") is obj
    events.on_delete(obj)
    assert len(scene.listers.of(ReplicaSet)) == 0
    assert (scene.queue.events, scene.wakes) == ([], wakes)
