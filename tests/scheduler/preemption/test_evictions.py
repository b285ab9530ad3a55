"""Under strict budgets victims end by the Eviction API."""

from tests.scheduler.preemption.scene import preempt

from bayplan.queue.queued_pod import SubQueue


async def test_under_strict_budgets_victims_are_evicted_one_by_one_and_told_why_afterwards(scene):
    scene.chooser.evicts = True
    scene.place("v", "n1", cpu="0")
    await preempt(scene, "low-n1", "v")
    assert scene.api.order() == [
        ("PATCH", "p"),
        ("EVICT", "low-n1"),
        ("PATCH", "low-n1"),
        ("EVICT", "v"),
        ("PATCH", "v"),
    ]
    assert scene.api.bodies("EVICT", "v") == [
        {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": "v", "namespace": "default"},
            "deleteOptions": {"preconditions": {"uid": "v"}},
        }
    ]
    assert [uid for uid, *_ in scene.recorder.preemptions] == ["low-n1", "v"]


async def test_an_eviction_a_budget_refuses_withdraws_the_nomination_and_spares_the_rest(scene):
    scene.chooser.evicts = True
    scene.place("v", "n1", cpu="0")
    scene.api.answers["EVICT", "low-n1"] = [429]
    await preempt(scene, "low-n1", "v")
    assert scene.api.order() == [("PATCH", "p"), ("EVICT", "low-n1"), ("PATCH", "p")]
    assert scene.nominated() is None
    assert scene.sub_queue_of() is SubQueue.ERROR_BACKOFF
