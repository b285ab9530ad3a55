"""What becomes of a pod whose bind fails, or is overtaken by what the watch tells."""

import pytest
from tests.builders import make_node, make_pod

from bayplan.queue.queued_pod import SubQueue
from bayplan.scheduler.binder import BindError, BindResult


def full(scene):
    """A node that pod "p", whose bind is under way, fills; "q" waits for room."""
    scene.node(cpu="1")
    for name in ("p", "q"):
        scene.pod(name)
        scene.step()
    assert scene.sub_queue_of("q") is SubQueue.UNSCHEDULABLE
    scene.said()


async def test_a_failed_bind_gives_the_room_back_wakes_others_and_backs_off(scene):
    full(scene)
    scene.binder.result = BindError("status 403: no")
    await scene.dispatcher.run()
    scene.check()
    assert scene.cache.node_of("p") is None
    assert scene.sub_queue_of("p") is SubQueue.ERROR_BACKOFF
    assert scene.sub_queue_of("q") is SubQueue.BACKOFF
    message = 'running Bind plugin "DefaultBinder": status 403: no'
    assert scene.said() == [("p", "FailedScheduling", message)]
    assert scene.dispatcher.patches[-1] == ("p", "SchedulerError", message)
    assert scene.metrics.results() == ["unschedulable", "error"]
    assert scene.metrics.bounds == []


async def test_a_bind_that_finds_no_place_among_those_without_an_answer_fails_at_once(scene):
    scene.dispatcher.takes = lambda namespace: namespace != "default"
    await scene.first_attempt()
    assert scene.binder.bindings == []
    assert (scene.cache.node_of("p"), scene.sub_queue_of()) == (None, SubQueue.ERROR_BACKOFF)
    assert scene.said() == [
        ("p", "FailedScheduling", "too many binds of the namespace wait for an answer of the API server")
    ]


async def test_a_binder_that_breaks_is_a_failed_bind(scene, caplog):
    scene.binder.result = RuntimeError("bug")
    await scene.first_attempt()
    assert scene.cache.node_of("p") is None
    assert scene.sub_queue_of() is SubQueue.ERROR_BACKOFF
    assert "bind failed unexpectedly" in caplog.text


@pytest.mark.parametrize("result", [BindError("unreachable"), BindResult.GONE], ids=["failed", "gone"])
@pytest.mark.parametrize("node", ["n1", "n2"], ids=["our node", "another node"])
async def test_a_pod_the_watch_shows_on_a_node_meanwhile_is_counted_there_and_is_no_failure(scene, result, node):
    scene.binder.result = result
    scene.binder.meanwhile = lambda: scene.assigned.on_add(make_pod(uid="p", node=node, cpu="1"))
    await scene.first_attempt()
    assert scene.cache.confirmed_node("p") == node
    assert (scene.queue.uids(), scene.said(), scene.dispatcher.patches) == (set(), [], [])


async def test_a_pod_that_is_no_longer_ours_gives_the_room_back_without_a_word(scene):
    full(scene)
    scene.binder.result = BindResult.GONE
    await scene.dispatcher.run()
    assert (scene.cache.node_of("p"), scene.queue.get("p"), scene.said()) == (None, None, [])
    assert scene.sub_queue_of("q") is SubQueue.BACKOFF
    assert scene.metrics.results() == ["unschedulable"]


async def test_a_pod_that_somebody_else_bound_keeps_its_room_until_a_watch_shows_it_and_gets_no_scheduled_event(scene):
    scene.binder.result = BindResult.TAKEN
    await scene.first_attempt()
    assert (scene.cache.node_of("p"), scene.queue.uids()) == ("n1", set())
    assert (scene.said(), scene.metrics.results()) == ([("p", "BoundByAnother", "")], [])


async def test_a_pod_that_is_told_gone_during_a_bind_that_succeeds_keeps_its_room(scene):
    # The watch of unscheduled pods tells of a pod that was bound as of one that was deleted.
    scene.binder.meanwhile = lambda: scene.pending.gone("p")
    await scene.first_attempt()
    assert (scene.cache.node_of("p"), scene.queue.uids()) == ("n1", set())
    assert (scene.binder.bindings, scene.said()) == ([("p", "n1")], [("p", "Scheduled", "n1")])


async def test_a_pod_deleted_before_its_bind_began_is_not_posted(scene):
    scene.node()
    scene.pod()
    scene.step()
    scene.pending.gone("p")
    await scene.dispatcher.run()
    assert (scene.binder.bindings, scene.cache.node_of("p"), scene.queue.uids()) == ([], None, set())


async def test_a_pod_deleted_while_its_bind_fails_is_not_tried_again_or_talked_about(scene):
    scene.binder.result = BindError("x")
    scene.binder.meanwhile = lambda: scene.pending.gone("p")
    await scene.first_attempt()
    assert (scene.queue.uids(), scene.said(), scene.dispatcher.patches) == (set(), [], [])
    assert scene.cache.node_of("p") is None


async def test_every_way_out_of_a_bind_wakes_the_loop(scene):
    woken = []
    scene.node()
    for name, result in (("a", BindResult.BOUND), ("b", BindResult.GONE), ("c", BindError("x"))):
        scene.pod(name)
        scene.binder.result = result
        scene.step()
        scene.news.clear()
        await scene.dispatcher.run()
        woken.append(scene.news.is_set())
    assert woken == [True, True, True]


def test_a_bind_that_takes_long_keeps_nothing_of_what_happens_meanwhile(scene, allocated):
    scene.node()
    scene.pod("p")
    scene.step()
    before = allocated()
    old = make_node("n1")
    for serial in range(1000):
        new = make_node("n1", labels={f"example.com/label-{i}": f"{serial}" for i in range(20)})
        scene.nodes.on_update(old, new)
        old = new
    assert allocated() - before < 2**18
