import msgspec
import pytest
from tests.builders import make_node, make_pod

from bayplan.api.objects import Node, NodeCondition, ObjectMeta
from bayplan.api.storage_objects import StorageClass
from bayplan.api.workload_objects import ReplicaSet
from bayplan.cache.cache import Cache
from bayplan.cache.listers import Listers
from bayplan.cache.pod_info import PodInfo
from bayplan.queue.queueing_hints import QueueProfile
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.event_handlers import (
    AssignedPodEvents,
    ListerEvents,
    NodeEvents,
    ObservedHandler,
    PendingPodEvents,
    node_changes,
)
from bayplan.scheduler.observer import NoObserver


class SpiedQueue(SchedulingQueue):
    """A real queue that remembers what it was told happened."""

    def __init__(self):
        super().__init__(clock=lambda: 100.0, profiles={"bayplan": QueueProfile(lambda _: None, {})})
        self.events = []

    def move_all(self, event, old, new):
        self.events.append((event.label, old, new))
        super().move_all(event, old, new)

    def labels(self):
        labels, self.events = [label for label, _, _ in self.events], []
        return labels


class Observer(NoObserver):
    def __init__(self):
        self.left_out = []
        self.handled = []

    def undecodable(self, kind):
        self.left_out.append(kind)

    def event_handled(self, event, seconds):
        assert seconds >= 0
        self.handled.append(event)


class Scene:
    def __init__(self):
        self.cache = Cache()
        self.queue = SpiedQueue()
        self.observer = Observer()
        self.wakes = 0
        self.gone = []
        self.listers = Listers()
        self.nodes = NodeEvents(self.cache, self.queue, self._wake, self.observer)
        self.assigned = AssignedPodEvents(self.cache, self.queue, self._wake, self.observer, on_gone=self.gone.append)
        self.pending = PendingPodEvents(
            self.cache,
            self.queue,
            self._wake,
            self.observer,
            profiles=frozenset({"bayplan"}),
            on_gone=self.gone.append,
        )

    def events_of(self, kind):
        return ListerEvents(self.listers.of(kind), kind.__name__, self.queue, self._wake)

    def _wake(self):
        self.wakes += 1

    def cpu(self, node="a"):
        return int(self.cache.nodes.requested["cpu"][self.cache.nodes.row(node)])


@pytest.fixture
def scene():
    made = Scene()
    made.nodes.on_add(make_node("a"))
    made.queue.labels()
    return made


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
    scene.cache.assume_pod(PodInfo(make_pod(uid="u", cpu="1")), "a")
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
    scene.cache.validate()
    assert (scene.cpu(), scene.cache.sizes().pods, scene.queue.uids()) == (1000, 1, {"w"})
    for _ in range(2):
        scene.assigned.on_delete(pod)
        scene.pending.gone("w")
        scene.nodes.on_delete(node)
    scene.cache.validate()
    assert (scene.cache.sizes().pods, scene.queue.uids()) == (0, set())


def test_a_pending_pod_of_ours_is_queued_and_strangers_are_not(scene):
    scene.pending.changed(make_pod(uid="ours"))
    scene.pending.changed(make_pod(uid="theirs", scheduler_name="default-scheduler"))
    assert scene.queue.uids() == {"ours"}
    assert scene.wakes == 2


@pytest.mark.parametrize("change", [{"node": "a"}, {"phase": "Failed"}, {"phase": "Succeeded"}])
def test_a_queued_pod_that_is_no_longer_pending_leaves_the_queue(scene, change):
    scene.pending.changed(make_pod(uid="u"))
    scene.pending.changed(make_pod(uid="u", **change))
    assert scene.queue.uids() == set()
    assert scene.gone == ["u"]


@pytest.mark.parametrize(
    "odd",
    [{"name": ""}, {"name": ".."}, {"namespace": "."}, {"name": "\ud800"}, {"uid": ""}, {"cpu": "many"}],
    ids=repr,
)
def test_a_pending_pod_nobody_can_work_with_is_reported_and_left_out(scene, odd, caplog):
    scene.pending.changed(make_pod(**{"uid": "u", **odd}))
    assert (scene.queue.uids(), scene.observer.left_out) == (set(), ["Pod"])
    assert "pod left out" in caplog.text


def test_a_queued_pod_that_becomes_unreadable_leaves_the_queue(scene):
    scene.pending.changed(make_pod(uid="u", cpu="1"))
    scene.pending.changed(make_pod(uid="u", cpu="many", resource_version="2"))
    assert scene.queue.uids() == set()


def test_a_pod_that_is_gone_leaves_the_queue_and_its_events(scene):
    scene.pending.changed(make_pod(uid="u"))
    scene.pending.gone("u")
    assert (scene.queue.uids(), scene.gone) == (set(), ["u"])


def test_a_late_event_of_a_bound_pod_does_not_queue_it_again(scene):
    scene.assigned.on_add(make_pod(uid="u", node="a"))
    scene.pending.changed(make_pod(uid="u"))
    assert scene.queue.uids() == set()


def answer(**fields):
    return msgspec.json.encode(make_pod(uid="u", **fields))


def test_the_answer_to_a_write_is_the_pods_newest_version(scene):
    scene.pending.changed(make_pod(uid="u", resource_version="7"))
    assert not scene.pending.knows("u", "8")
    scene.pending.written(answer(resource_version="8", labels={"a": "1"}))
    assert scene.pending.knows("u", "8")
    assert scene.queue.newest("u").pod.metadata.labels == {"a": "1"}


def test_an_answer_during_an_attempt_is_what_is_tried_next(scene):
    scene.pending.changed(make_pod(uid="u", resource_version="7"))
    queued = scene.queue.pop()
    scene.pending.written(answer(resource_version="8"))
    assert scene.pending.knows("u", "8")
    scene.queue.add_unschedulable(queued, rejector_plugins=frozenset(), error=True)
    assert scene.queue.get("u").pod_info.pod.metadata.resource_version == "8"


def test_a_version_that_comes_after_a_later_one_is_dropped(scene):
    scene.pending.changed(make_pod(uid="u", resource_version="10"))
    scene.pending.changed(make_pod(uid="u", resource_version="9", labels={"a": "1"}))
    assert scene.pending.knows("u", "10")
    scene.pending.changed(make_pod(uid="u", resource_version="odd"))
    assert scene.pending.knows("u", "odd"), "versions that are no numbers have no order"


@pytest.mark.parametrize("body", [b"", b"{}", b'{"kind":"Status"}', b"\xff"], ids=repr)
def test_an_answer_that_is_no_pod_changes_nothing(scene, body):
    scene.pending.changed(make_pod(uid="u", resource_version="7"))
    scene.pending.written(body)
    assert scene.pending.knows("u", "7")


def test_an_answer_about_a_pod_that_no_longer_waits_does_not_queue_it(scene):
    scene.pending.written(answer(resource_version="8"))
    scene.pending.changed(make_pod(uid="u", resource_version="7"))
    scene.queue.pop()
    scene.pending.gone("u")
    scene.pending.written(answer(resource_version="8"))
    assert (scene.queue.uids(), scene.pending.knows("u", "8")) == (set(), False)


def test_an_answer_about_a_pod_on_a_node_is_left_to_the_watch(scene):
    scene.pending.changed(make_pod(uid="u", resource_version="7"))
    scene.pending.written(answer(resource_version="8", node="a"))
    assert scene.pending.knows("u", "7")


def test_a_pod_without_a_version_is_never_known(scene):
    scene.pending.changed(make_pod(uid="u", resource_version=""))
    assert not scene.pending.knows("u", "")


def test_an_update_during_the_bind_is_what_is_tried_next_if_the_bind_fails(scene):
    scene.pending.changed(make_pod(uid="u"))
    queued = scene.queue.pop()
    scene.cache.assume_pod(queued.pod_info, "a")
    newer = make_pod(uid="u", resource_version="2", tolerations=["x"])
    scene.pending.changed(newer)
    assert scene.queue.pop() is None
    scene.cache.forget_pod("u")
    scene.queue.add_unschedulable(queued, rejector_plugins=frozenset(), error=True)
    assert scene.queue.get("u").pod_info.pod is newer


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
