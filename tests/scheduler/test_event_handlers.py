import msgspec
import pytest
from tests.builders import make_node, make_pod, make_pod_info
from tests.cache_checks import assert_adds_up

from bayplan.api.meta_objects import ObjectMeta
from bayplan.api.objects import ContainerStatus, Node, ResourceRequirements
from bayplan.api.storage_objects import StorageClass
from bayplan.api.workload_objects import ReplicaSet
from bayplan.framework.cluster_event import node_changes


def node(**fields):
    return make_node("a", **{"taints": ["x:NoSchedule"], "labels": {"zone": "1"}, **fields})


def test_a_new_node_is_counted_and_told(handlers):
    node = make_node("b")
    handlers.nodes.on_add(node)
    assert handlers.cache.has_node("b")
    assert handlers.queue.events == [("NodeAdd", None, node)]
    assert handlers.wakes == 2


NODE = node()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"cpu": "8"}, ["NodeUpdateNodeAllocatable"]),
        ({"labels": {"zone": "2"}}, ["NodeUpdateNodeLabel"]),
        ({"taints": []}, ["NodeUpdateNodeTaint"]),
        ({"conditions": {"Ready": "False"}}, ["NodeUpdateNodeCondition"]),
        ({"unschedulable": True}, []),
        ({"images": {"i": 1}}, []),
        (
            {"cpu": "8", "labels": {"zone": "2"}, "taints": [], "conditions": {"Ready": "False"}},
            ["NodeUpdateNodeAllocatable", "NodeUpdateNodeLabel", "NodeUpdateNodeTaint", "NodeUpdateNodeCondition"],
        ),
    ],
    ids=["nothing", "allocatable", "labels", "taints", "condition", "cordon", "images", "all"],
)
def test_a_changed_node_is_told_once_per_kind_of_change(handlers, change, expected):
    new = node(**change)
    handlers.nodes.on_update(NODE, new)
    assert all((old, changed) == (NODE, new) for _, old, changed in handlers.queue.events)
    assert handlers.queue.labels() == expected
    assert handlers.cache.nodes.nodes[handlers.cache.nodes.row("a")] is new


def test_an_uncordoned_node_counts_as_a_change_of_taints(handlers):
    handlers.nodes.on_update(make_node("a", unschedulable=True), make_node("a"))
    assert handlers.queue.labels() == ["NodeUpdateNodeTaint"]


def test_a_heartbeat_is_no_change():
    def beat(time):
        conditions = [{"type": "Ready", "status": "True", "reason": time, "lastHeartbeatTime": time}]
        return msgspec.convert({"metadata": {"name": "a"}, "status": {"conditions": conditions}}, Node)

    assert node_changes(beat("2026-01-01T00:00:00Z"), beat("2026-01-01T00:00:10Z")) == []


def test_a_node_that_goes_is_told_and_its_pods_count_again_when_it_comes_back(handlers):
    handlers.nodes.on_add(make_node("another"))
    handlers.assigned.on_add(make_pod(node="a", cpu="1"))
    handlers.queue.labels()
    node = make_node("a")
    handlers.nodes.on_delete(node)
    assert not handlers.cache.has_node("a")
    assert handlers.queue.events == [("NodeDelete", node, None)]
    handlers.nodes.on_add(node)
    assert handlers.cpu() == 1000


def test_a_node_that_cannot_be_read_is_no_candidate_and_is_new_once_it_can(handlers):
    good, bad = make_node("a"), make_node("a", cpu="many")
    handlers.nodes.on_update(good, bad)
    assert not handlers.cache.has_node("a")
    assert handlers.metrics.left_out == ["Node"]
    assert handlers.queue.labels() == []
    handlers.nodes.on_update(bad, good)
    assert handlers.cache.has_node("a")
    assert handlers.queue.labels() == ["NodeAdd"]


def test_a_new_node_that_cannot_be_read_is_left_out(handlers):
    handlers.nodes.on_add(make_node("b", memory="-"))
    assert not handlers.cache.has_node("b")
    assert (handlers.metrics.left_out, handlers.queue.labels()) == (["Node"], [])


def test_a_pod_on_a_node_is_counted_and_told_and_so_is_its_going(handlers):
    pod = on_node()
    handlers.assigned.on_add(pod)
    assert handlers.cpu() == 1000
    handlers.assigned.on_delete(pod)
    assert (handlers.cpu(), handlers.gone) == (0, ["u"])
    (added, _, new), (deleted, old, _) = handlers.queue.events
    assert (added, new.pod, deleted, old.pod) == ("AssignedPodAdd", pod, "AssignedPodDelete", pod)


def test_what_is_told_of_a_pod_that_goes_is_what_the_cache_had_worked_out(handlers, monkeypatch):
    handlers.nodes.on_add(make_node("n1"))
    pod = make_pod("p", uid="p", node="n1")
    handlers.assigned.on_add(pod)
    held, told = handlers.cache.pod("p"), []
    monkeypatch.setattr(handlers.queue, "move_all", lambda event, old, new: told.append(old))
    handlers.assigned.on_delete(pod)
    assert told == [held]


def test_a_pod_bound_by_somebody_else_leaves_the_queue(handlers):
    handlers.pending.changed(make_pod(uid="u"))
    handlers.assigned.on_add(make_pod(uid="u", node="a"))
    assert handlers.queue.get("u") is None


def test_the_confirmation_of_an_assumed_pod_changes_no_number_and_leaves_it_in_flight(handlers):
    handlers.pending.changed(make_pod(uid="u", cpu="1"))
    queued = handlers.queue.pop()
    handlers.cache.assume_pod(queued.pod_info, "a")
    before = handlers.cache.nodes.usage_changed.position
    handlers.assigned.on_add(make_pod(uid="u", cpu="1", node="a"))
    assert handlers.cache.nodes.usage_changed.position == before
    assert handlers.cache.confirmed_node("u") == "a"
    assert handlers.queue.get("u") is queued
    assert handlers.queue.labels() == ["AssignedPodAdd"]


def on_node(**fields):
    return make_pod(**{"uid": "u", "node": "a", "cpu": "1", **fields})


def placed(handlers):
    """A pod on the node that has been told of."""
    pod = on_node()
    handlers.assigned.on_add(pod)
    handlers.queue.labels()
    return pod


@pytest.mark.parametrize(
    ("change", "told", "cpu"),
    [
        ({"labels": {"x": "y"}}, ["AssignedPodUpdatePodLabel"], 1000),
        ({"cpu": "500m"}, ["AssignedPodUpdatePodScaleDown"], 500),
        ({"tolerations": ["k"]}, ["AssignedPodUpdatePodToleration"], 1000),
        ({"cpu": "2"}, ["AssignedPodUpdate"], 2000),
        ({"phase": "Pending"}, ["AssignedPodUpdate"], 1000),
        ({"phase": "Succeeded"}, ["AssignedPodDelete"], 0),
        ({"phase": "Failed"}, ["AssignedPodDelete"], 0),
    ],
    ids=["labels", "shrinks", "tolerates", "grows", "status", "succeeds", "fails"],
)
def test_a_change_of_a_placed_pod_is_told_by_its_kind_and_an_end_is_its_going(handlers, change, told, cpu):
    old = placed(handlers)
    handlers.assigned.on_update(old, on_node(**change))
    assert (handlers.queue.labels(), handlers.cpu()) == (told, cpu)
    assert handlers.gone == (["u"] if cpu == 0 else [])


def test_a_resize_makes_room_only_when_the_kubelet_reports_it(handlers):
    def resized(cpu, actual):
        status = ContainerStatus(name="c", resources=ResourceRequirements(requests={"cpu": actual}))
        return on_node(cpu=cpu, container_statuses=[status])

    before, asked, done = resized("2", "2"), resized("1", "2"), resized("1", "1")
    handlers.assigned.on_add(before)
    handlers.queue.labels()
    handlers.assigned.on_update(before, asked)
    assert (handlers.queue.labels(), handlers.cpu()) == (["AssignedPodUpdate"], 2000)
    handlers.assigned.on_update(asked, done)
    assert (handlers.queue.labels(), handlers.cpu()) == (["AssignedPodUpdatePodScaleDown"], 1000)


def test_an_assumed_pod_that_ended_before_it_was_seen_gives_its_room_back(handlers):
    handlers.cache.assume_pod(make_pod_info(uid="u", cpu="1"), "a")
    handlers.assigned.on_add(make_pod(uid="u", cpu="1", node="a", phase="Failed"))
    assert (handlers.cpu(), handlers.queue.labels()) == (0, ["AssignedPodDelete"])


def test_a_placed_pod_that_cannot_be_read_is_reported_and_keeps_its_last_size(handlers):
    old, bad = placed(handlers), on_node(cpu="many")
    handlers.assigned.on_update(old, bad)
    assert (handlers.cpu(), handlers.metrics.left_out, handlers.queue.labels()) == (1000, ["Pod"], [])
    handlers.assigned.on_delete(bad)
    assert (handlers.cpu(), handlers.queue.labels()) == (0, ["AssignedPodDelete"])


def test_the_same_event_twice_changes_nothing(handlers):
    pod, node = make_pod(uid="u", node="a", cpu="1"), make_node("a")
    waiting = make_pod(uid="w")
    for _ in range(2):
        handlers.nodes.on_add(node)
        handlers.assigned.on_add(pod)
        handlers.pending.changed(waiting)
    assert_adds_up(handlers.cache)
    assert (handlers.cpu(), handlers.cache.sizes().pods, handlers.queue.uids()) == (1000, 1, {"w"})
    for _ in range(2):
        handlers.assigned.on_delete(pod)
        handlers.pending.gone("w")
        handlers.nodes.on_delete(node)
    assert_adds_up(handlers.cache)
    assert (handlers.cache.sizes().pods, handlers.queue.uids()) == (0, set())


def test_a_pod_that_is_said_to_be_gone_is_gone_once_whatever_the_watch_still_tells(handlers):
    pod = placed(handlers)
    handlers.assigned.gone_by_answer("u")
    handlers.assigned.on_update(pod, on_node(resource_version="2"))
    handlers.assigned.on_delete(pod)
    assert (handlers.cpu(), handlers.queue.labels(), handlers.gone) == (0, ["AssignedPodDelete"], ["u"])
    handlers.assigned.on_add(pod)
    assert handlers.cpu() == 1000


def test_the_end_of_a_pod_that_the_watch_has_not_shown_is_the_watchs_to_tell(handlers):
    handlers.cache.assume_pod(make_pod_info(uid="u", cpu="1"), "a")
    handlers.assigned.gone_by_answer("u")
    handlers.assigned.gone_by_answer("unknown")
    assert (handlers.cpu(), handlers.gone) == (1000, [])


def test_a_lister_is_kept_and_each_change_of_its_kind_told(handlers):
    events, lister = handlers.events_of(StorageClass), handlers.listers.of(StorageClass)
    old, new = (StorageClass(metadata=ObjectMeta(name="fast", resource_version=str(i))) for i in range(2))
    events.on_add(old)
    assert (lister.get("fast"), lister.synced) == (old, False)
    events.on_synced()
    assert lister.synced
    events.on_update(old, new)
    assert lister.get("fast") is new
    events.on_delete(new)
    assert lister.get("fast") is None
    assert handlers.queue.events == [
        ("StorageClassAdd", None, old),
        ("StorageClassUpdate", old, new),
        ("StorageClassDelete", new, None),
    ]
    assert handlers.wakes == 4


def test_the_lister_is_up_to_date_when_the_hints_are_asked(handlers):
    lister, seen = handlers.listers.of(StorageClass), []
    handlers.queue.move_all = lambda event, old, new: seen.append(len(lister))
    events, obj = handlers.events_of(StorageClass), StorageClass(metadata=ObjectMeta(name="fast"))
    events.on_add(obj)
    events.on_delete(obj)
    assert seen == [1, 0]


def test_a_kind_that_no_plugin_can_wait_for_wakes_nobody(handlers):
    obj = ReplicaSet(metadata=ObjectMeta(name="web", namespace="default"))
    events, wakes = handlers.events_of(ReplicaSet), handlers.wakes
    events.on_add(obj)
    events.on_update(obj, obj)
    assert handlers.listers.of(ReplicaSet).get("default/web") is obj
    events.on_delete(obj)
    assert len(handlers.listers.of(ReplicaSet)) == 0
    assert (handlers.queue.events, handlers.wakes) == ([], wakes)
