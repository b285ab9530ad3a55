"""No victim ends for nothing: one that the API server refuses to end is found out before any other has ended."""

import json

import pytest
from tests.builders import make_pod_info
from tests.scheduler.preemption.scene import preempt

from bayplan.api.errors import AmbiguousError
from bayplan.queue.queued_pod import SubQueue
from bayplan.scheduler.refused_victims import REMEMBERED_BYTES, RefusedVictims

WHY = "bayplan ends no pod in kube-system"
FORBIDDEN = (403, json.dumps({"kind": "Status", "reason": "Forbidden", "message": WHY}).encode())
INVALID = (422, json.dumps({"kind": "Status", "reason": "Invalid", "message": WHY}).encode())
"""What a policy answers that names no reason of its own."""
SYSTEM = {"namespace": "kube-system"}
CRITICAL = {"priority": 2_000_000_000}


def co_victims(scene, count=20):
    """The names of so many pods on n1 that nobody protects."""
    names = [f"v{number:02}" for number in range(count)]
    for name in names:
        scene.place(name, "n1", cpu="0")
    return names


@pytest.mark.parametrize("protected", [SYSTEM, CRITICAL], ids=["kube-system", "system priority"])
@pytest.mark.parametrize("answer", [FORBIDDEN, INVALID, 500, AmbiguousError("lost")], ids=repr)
async def test_a_victim_that_the_cluster_needs_is_asked_for_first_and_a_refusal_spares_them_all(
    scene, protected, answer
):
    scene.place("dns", "n1", cpu="0", **protected)
    scene.api.answers["ASK", "dns"] = [answer] * 4
    await preempt(scene, *co_victims(scene), "dns", priority=2_000_000_001)
    assert {kind for kind, name in scene.api.order() if name != "p"} == {"ASK"}
    assert scene.recorder.preemptions == []
    assert scene.metrics.executed == ["error"]
    assert scene.nominated() is None
    assert scene.sub_queue_of() is SubQueue.ERROR_BACKOFF


async def test_the_pod_is_told_what_was_refused_and_the_log_names_the_victim_and_the_reason(scene, caplog):
    scene.place("dns", "n1", cpu="0", **SYSTEM)
    scene.api.refuses["dns"] = FORBIDDEN
    await preempt(scene, "low-n1", "dns")
    (patch,) = scene.api.bodies("PATCH", "p")
    (condition,) = patch["status"]["conditions"]
    told = "preemption: the API server answered 403 to the end of a victim on node n1."
    assert condition["reason"] == "Unschedulable"
    assert condition["message"].endswith(f" {told}")
    assert (scene.recorder.said[-1][:2], scene.recorder.said[-1][2][-len(told) :]) == (("p", "FailedScheduling"), told)
    (line,) = [each.getMessage() for each in caplog.records if "given up" in each.message]
    for part in ("'default/p'", "'n1'", "'kube-system/dns'", "403", WHY):
        assert part in line
    assert "dns" not in condition["message"], "its owner may not know of pods in other namespaces"


async def test_a_pod_whose_victims_are_always_refused_backs_off_longer_each_time_and_is_written_on_once(scene):
    scene.place("dns", "n1", cpu="0", **SYSTEM)
    scene.api.refuses["dns"] = FORBIDDEN
    waits = []
    await preempt(scene, "low-n1", "dns")
    for _ in range(6):
        assert scene.sub_queue_of() is SubQueue.ERROR_BACKOFF
        waits.append(scene.queue.next_deadline() - scene.now)
        scene.after(waits[-1])
        await scene.attempt()
    assert waits == sorted(waits)
    assert 0.5 < waits[0] < waits[-1] <= 11
    assert scene.api.order().count(("PATCH", "p")) == 1
    assert scene.api.order().count(("ASK", "dns")) == 7
    assert scene.api.deleted() == []
    assert scene.metrics.results()[-1] == "unschedulable"


async def test_a_pod_whose_victims_are_no_longer_refused_gets_its_room(scene):
    scene.place("dns", "n1", cpu="0", **SYSTEM)
    scene.api.refuses["dns"] = FORBIDDEN
    await preempt(scene, "low-n1", "dns")
    del scene.api.refuses["dns"]
    scene.after(100)
    await scene.attempt()
    assert scene.nominated() == "n1"
    assert scene.api.deleted() == ["dns", "low-n1"]


async def test_victims_that_may_be_refused_end_first_and_the_most_important_of_the_others_next(scene):
    names = ["v1", "dns", "v3", "critical"]
    for name, fields in zip(names, ({"priority": 1}, SYSTEM, {"priority": 3}, CRITICAL), strict=True):
        scene.place(name, "n1", cpu="0", **fields)
    await preempt(scene, *names, priority=2_000_000_001)
    assert scene.api.deleted() == ["critical", "dns", "v3", "v1"]


async def test_a_refusal_that_nobody_expected_spares_those_not_begun_and_is_expected_from_then_on(scene):
    names = co_victims(scene)
    guarded = names[0]
    scene.api.refuses[guarded] = INVALID
    await preempt(scene, *names)
    ended = set(scene.api.deleted()) - {guarded}
    assert len(ended) == 7
    assert scene.sub_queue_of() is SubQueue.ERROR_BACKOFF
    for name in ended:
        scene.assigned.on_delete(scene.placed[name])
    for _ in range(3):
        scene.after(100)
        await scene.attempt()
    assert set(scene.api.deleted()) - {guarded} == ended, "no further one ends for nothing"
    assert scene.api.order().count(("ASK", guarded)) == 3


async def test_victims_that_nobody_protects_are_not_asked_for(scene):
    await preempt(scene, *co_victims(scene))
    assert "ASK" not in {kind for kind, _ in scene.api.order()}


@pytest.mark.parametrize("status", [400, 404, 409])
async def test_a_victim_that_is_gone_or_cannot_be_asked_for_keeps_nobody_from_the_room(scene, status):
    """Some webhooks answer 400 to any dry run; the call itself will tell."""
    scene.place("dns", "n1", cpu="0", **SYSTEM)
    scene.api.answers["ASK", "dns"] = [status]
    await preempt(scene, "low-n1", "dns")
    assert scene.api.deleted() == ["dns", "low-n1"]


async def test_a_pod_that_loses_its_node_while_the_victims_are_asked_for_ends_none(scene):
    scene.place("dns", "n1", cpu="0", **SYSTEM)
    scene.api.close("ASK", "dns")
    await preempt(scene, "dns", uid="low", priority=1)
    scene.place("another", "n1", cpu="0")
    await preempt(scene, "another")
    scene.api.open("ASK", "dns")
    await scene.work()
    assert scene.api.deleted() == ["another"]
    assert (scene.nominated("low"), scene.nominated("p")) == (None, "n1")
    assert all(not body["status"].get("nominatedNodeName") for body in scene.api.bodies("PATCH", "low"))


async def test_a_pod_that_is_deleted_while_the_victims_are_asked_for_ends_none(scene):
    scene.place("dns", "n1", cpu="0", **SYSTEM)
    scene.api.close("ASK", "dns")
    await preempt(scene, "dns")
    scene.pending.gone("p")
    scene.api.open("ASK", "dns")
    await scene.work()
    assert scene.api.order() == [("ASK", "dns")]
    assert scene.queue.uids() == set()


async def test_under_strict_budgets_victims_that_may_be_refused_are_asked_for_through_the_eviction_api(scene):
    scene.chooser.evicts = True
    scene.place("dns", "n1", cpu="0", **SYSTEM)
    scene.api.answers["ASK", "dns"] = [429]
    await preempt(scene, "low-n1", "dns")
    (asked,) = scene.api.bodies("ASK", "dns")
    assert asked["deleteOptions"] == {"preconditions": {"uid": "dns"}, "dryRun": ["All"]}
    assert [kind for kind, _ in scene.api.order()] == ["ASK", "PATCH"]


async def test_what_is_remembered_of_refusals_has_a_bound_in_bytes(scene):
    refused = RefusedVictims(scene.dispatcher.request)
    scene.api.answers["DELETE", ""] = []

    class Answer:
        status, body = 403, b""

    victims = [make_pod_info(f"v{number}", uid=f"{number:036}") for number in range(5000)]
    for victim in victims:
        call = type("Call", (), {"method": "DELETE", "about": victim.key})
        assert refused.problem(victim, call, Answer)
    assert REMEMBERED_BYTES * 0.9 < refused.size <= REMEMBERED_BYTES
    assert refused.is_likely(victims[-1])
    assert not refused.is_likely(victims[0])
