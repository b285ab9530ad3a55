"""What becomes of a pod in one attempt, from its pop to its bind or its message."""

from types import SimpleNamespace

import pytest

from bayplan.api.objects import Condition, PersistentVolumeClaimSource, Volume
from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.filter_round import FilterError
from bayplan.framework.status import SUCCESS
from bayplan.queue.queued_pod import SubQueue


async def test_a_pod_that_fits_is_assumed_at_once_and_bound(scene):
    scene.node()
    scene.pod()
    scene.step()
    assert (scene.cache.node_of("p"), scene.cache.is_assumed("p"), scene.binder.bindings) == ("n1", True, [])
    scene.now += 2.0
    await scene.dispatcher.run()
    assert scene.binder.bindings == [("p", "n1")]
    assert scene.cache.is_assumed("p")
    assert scene.queue.uids() == set()
    assert scene.recorder.forgotten == ["p"]
    assert scene.said() == [("p", "Scheduled", "n1")]
    assert scene.dispatcher.patches == []
    assert scene.metrics.ended == [("bayplan", "scheduled", 2.0)]
    assert scene.metrics.bounds == [(1, 2.0)]


async def test_the_time_to_bind_is_counted_from_the_first_attempt(scene):
    scene.pod()
    await scene.attempt()
    scene.after(50.0)
    scene.node()
    await scene.attempt()
    assert scene.metrics.bounds == [(2, 50.0)]


async def test_a_pod_that_fits_nowhere_waits_for_what_its_rejectors_want(scene):
    scene.node(cpu="500m")
    scene.node("n2", taints=["x:NoSchedule"])
    scene.pod()
    queued = await scene.attempt()
    message = (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    assert queued.rejector_plugins == {"NodeResourcesFit", "TaintToleration"}
    assert scene.sub_queue_of() is SubQueue.UNSCHEDULABLE
    assert scene.said() == [("p", "FailedScheduling", message)]
    assert scene.dispatcher.patches == [("p", "Unschedulable", message)]
    assert scene.metrics.results() == ["unschedulable"]
    assert scene.cache.node_of("p") is None


async def test_preemption_is_counted_for_the_pods_it_was_asked_about(scene):
    scene.node(cpu="500m")
    scene.pod("small")
    await scene.attempt()
    assert scene.metrics.attempts_at_preemption == 1
    # A PreFilter rejects it for good, which ends PostFilter before DefaultPreemption.
    scene.pod("claims", volumes=[Volume("data", PersistentVolumeClaimSource("missing"))])
    await scene.attempt()
    assert scene.said()[-1][2] == '0/1 nodes are available: persistentvolumeclaim "missing" not found. not found'
    assert scene.metrics.attempts_at_preemption == 1


@pytest.mark.parametrize(("claimed", "next_one"), [(True, "q"), (False, None)], ids=["for its claim", "for its size"])
async def test_only_a_pod_that_is_rejected_for_its_claim_has_those_like_it_tried_in_their_back_off(
    scene, claimed, next_one
):
    scene.node(cpu="500m")
    for name in ("p", "q"):
        fields = {"volumes": [Volume("data", PersistentVolumeClaimSource(f"missing-{name}"))]} if claimed else {}
        scene.pod(name, **fields)
        await scene.attempt()
    scene.node("n2", taints=["x:NoSchedule"])
    assert {scene.sub_queue_of("p"), scene.sub_queue_of("q")} == {SubQueue.BACKOFF}
    await scene.attempt()
    popped = scene.queue.pop()
    assert (popped.uid if popped else None) == next_one


async def test_without_nodes_a_pod_is_unschedulable_but_backs_off_as_after_an_error(scene):
    message = "no nodes available to schedule pods"
    scene.pod()
    for _ in range(3):
        await scene.attempt()
        assert scene.sub_queue_of() is SubQueue.ERROR_BACKOFF
        scene.after(20.0)
    assert scene.metrics.results() == ["unschedulable"] * 3
    # The same reason is patched once, though every failure is an event.
    assert scene.said() == [("p", "FailedScheduling", message)] * 3
    assert scene.dispatcher.patches == [("p", "Unschedulable", message)]
    echo = Condition(type="PodScheduled", status="False", reason="Unschedulable", message=message)
    scene.pod(resource_version="2", conditions=[echo])
    await scene.attempt()
    assert len(scene.dispatcher.patches) == 1


@pytest.mark.parametrize("nodes", [0, 1])
def test_a_nomination_ends_where_nobody_could_make_room_any_more(scene, nodes):
    scene.framework.post_filters = []
    for number in range(nodes):
        scene.node(f"n{number}", cpu="500m")
    scene.pod(nominated="n0")
    assert scene.queue.nominator.nominated_node("p") == "n0"
    assert scene.scheduler.schedule_one().nomination == ""
    assert scene.queue.nominator.nominated_node("p") is None


@pytest.mark.parametrize(("error", "message"), [(RuntimeError("boom"), "boom"), (KeyError(), "KeyError")])
async def test_an_exception_in_a_plugin_fails_its_pod_alone(scene, caplog, error, message):
    scene.node()

    def break_on_p(state, pod, node_name):
        if pod.uid == "p":
            raise error
        return SUCCESS

    scene.framework.permits = [SimpleNamespace(name="Permit", permit=break_on_p)]
    scene.pod("p")
    scene.pod("q")
    await scene.attempt()
    await scene.attempt()
    assert scene.sub_queue_of("p") is SubQueue.ERROR_BACKOFF
    assert scene.said() == [("p", "FailedScheduling", message), ("q", "Scheduled", "n1")]
    assert scene.dispatcher.patches == [("p", "SchedulerError", message)]
    assert scene.metrics.results() == ["error", "scheduled"]
    assert "scheduling cycle failed pod='default/p'" in caplog.text


async def test_a_filter_that_answers_with_an_error_is_told_to_the_user_and_leaves_no_traceback(scene, caplog):
    scene.node()

    def break_on_p(state, pod, node_name):
        raise FilterError('running "DynamicResources" filter plugin: no such key: numa')

    scene.framework.permits = [SimpleNamespace(name="Permit", permit=break_on_p)]
    await scene.first_attempt()
    assert scene.said() == [("p", "FailedScheduling", 'running "DynamicResources" filter plugin: no such key: numa')]
    assert "Traceback" not in caplog.text
    assert "scheduling cycle failed" not in caplog.text


async def test_a_pod_that_is_being_deleted_is_skipped_with_an_event(scene):
    await scene.first_attempt(deleting=True)
    assert scene.said() == [("p", "FailedScheduling", "skip schedule deleting pod: default/p")]
    assert (scene.queue.uids(), scene.cache.node_of("p"), scene.dispatcher.patches) == (set(), None, [])
    assert scene.metrics.ended == []


async def test_a_pod_that_is_on_a_node_already_is_skipped(scene):
    scene.node()
    pod = scene.pod()
    scene.cache.assume_pod(PodInfo(pod), "n1")
    await scene.attempt()
    assert (scene.queue.uids(), scene.binder.bindings, scene.said()) == (set(), [], [])
    assert scene.cache.is_assumed("p")
