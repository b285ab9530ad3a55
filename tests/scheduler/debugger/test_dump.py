import pytest
from tests.builders import make_node, make_pod
from tests.scheduler.debugger.dumps import compare, held

from bayplan.api.storage_objects import StorageClass
from bayplan.api.workload_objects import Service
from bayplan.cache.pod_info import PodInfo
from bayplan.scheduler.cache_comparison import NODES, NOMINATIONS, PENDING, PODS, REQUESTED, ListedDump


@pytest.fixture
def listed():
    return ListedDump({"bayplan"})


def differing(scene, listed):
    return {(each.kind, each.key) for each in compare(held(scene.cache, scene.queue), listed)}


def placed(scene, name="a", *, node="n1", **fields):
    pod = make_pod(name, uid=name, node=node, **{"cpu": "1", **fields})
    scene.assigned.on_add(pod)
    return pod


def test_an_empty_cache_is_an_empty_cluster(scene, listed):
    assert differing(scene, listed) == set()


def test_nodes_compare_by_version_and_by_every_amount(scene, listed):
    scene.node("n1", cpu="4", memory="8Gi", resource_version="3")
    listed.add_node(make_node("n1", cpu="4", memory="8Gi", resource_version="3", uid="n1"))
    ours = held(scene.cache, scene.queue).of(NODES)["n1"]
    assert ("cpu", 4000) in ours[-1]
    theirs = listed.of(NODES)["n1"]
    assert ours[1:] == theirs[1:]
    listed.add_node(make_node("n1", cpu="4", memory="9Gi", resource_version="3", uid="n1"))
    assert (NODES, "n1") in differing(scene, listed)


def test_a_node_that_is_gone_has_no_fact_and_its_pods_are_still_held(scene, listed):
    pod = placed(scene)
    listed.add_pod(pod)
    assert differing(scene, listed) == set()


def test_pods_on_nodes_compare_by_node_and_amounts(scene, listed):
    listed.add_pod(placed(scene, "a"))
    placed(scene, "ghost")
    missed = make_pod("missed", uid="missed", node="n1", cpu="1")
    listed.add_pod(missed)
    assert differing(scene, listed) == {(PODS, "ghost"), (PODS, "missed")}


def test_a_pod_that_asks_for_more_than_the_cache_counts_differs(scene, listed):
    placed(scene, "a", cpu="1")
    listed.add_pod(make_pod("a", uid="a", node="n1", cpu="2"))
    assert differing(scene, listed) == {(PODS, "a")}


def test_finished_pods_and_pods_of_other_schedulers_are_not_to_be_held(scene, listed):
    listed.add_pod(make_pod("done", uid="done", node="n1", phase="Succeeded"))
    listed.add_pod(make_pod("other", uid="other", scheduler_name="default-scheduler"))
    assert differing(scene, listed) == set()


def test_pending_pods_compare_by_version(scene, listed):
    waiting = scene.pod("waiting")
    listed.add_pod(waiting)
    assert differing(scene, listed) == set()
    listed.add_pod(make_pod("waiting", uid="waiting", resource_version="99"))
    scene.pod("ghost")
    assert differing(scene, listed) == {(PENDING, "waiting"), (PENDING, "ghost")}


@pytest.mark.parametrize("fields", [{"deleting": True}, {"cpu": "nonsense"}])
def test_a_pending_pod_that_ends_or_cannot_be_read_may_be_held_or_not(scene, listed, fields):
    listed.add_pod(make_pod("odd", uid="odd", **fields))
    assert differing(scene, listed) == set()


def test_nominations_of_other_schedulers_pods_compare(scene, listed):
    pod = make_pod("other", uid="other", scheduler_name="default-scheduler", nominated="n1")
    scene.queue.nominate(PodInfo(pod), "n1")
    assert differing(scene, listed) == {(NOMINATIONS, "other")}
    listed.add_pod(pod)
    assert differing(scene, listed) == set()


def test_objects_that_plugins_look_up_compare_by_version(scene, listed):
    lister = scene.cache.listers.of(Service)
    lister.set(Service(metadata=make_pod("s", uid="s", resource_version="1").metadata))
    assert differing(scene, listed) == {("services", "default/s")}
    listed.add("services", Service(metadata=make_pod("s", uid="s", resource_version="1").metadata))
    assert differing(scene, listed) == set()
    listed.add("storageclasses", StorageClass(metadata=make_node("fast").metadata))
    assert differing(scene, listed) == {("storageclasses", "fast")}


async def test_a_pod_differs_neither_before_nor_while_nor_after_it_is_bound(scene, listed):
    scene.node()
    listed.add_node(scene.cache.nodes.nodes[scene.cache.nodes.row("n1")])
    waiting = scene.pod()
    listed.add_pod(waiting)
    assert differing(scene, listed) == set()
    scene.step()
    assert scene.cache.is_assumed("p")
    assert differing(scene, listed) == set()
    await scene.dispatcher.run()
    after = ListedDump({"bayplan"})
    after.add_node(scene.cache.nodes.nodes[scene.cache.nodes.row("n1")])
    after.add_pod(placed(scene, "p"))
    assert differing(scene, after) == set()


def test_amounts_that_are_clamped_compare_as_clamped(scene, listed):
    scene.node("n1")
    listed.add_node(scene.cache.nodes.nodes[scene.cache.nodes.row("n1")])
    for name in ("a", "b"):
        listed.add_pod(placed(scene, name, cpu="1e100"))
    assert differing(scene, listed) == set()
    assert held(scene.cache, scene.queue).of(REQUESTED)["n1"][0] == 2


def test_nothing_is_told_of_an_object_that_could_not_be_read(scene, listed):
    placed(scene, "a")
    listed.unreadable(PODS, "default/a", "a")
    assert differing(scene, listed) == set()
