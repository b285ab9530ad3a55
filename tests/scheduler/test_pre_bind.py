import asyncio
from dataclasses import replace

import pytest
from tests.plugins.volume_scenes import claim, delayed_class, pod_with, ref, volume
from tests.scheduler.scene import Scene

from bayplan.api.response import ApiCall, ApiResponse
from bayplan.config.feature_gates import parse_feature_gates
from bayplan.config.load import default_configuration
from bayplan.framework.status import (
    EffectError,
    Exchange,
    Notice,
    wait_until,
)
from bayplan.queue.queued_pod import SubQueue
from bayplan.scheduler.pre_bind import perform_effects


class Requests:
    """A dispatcher that answers every call alike and keeps what it was asked."""

    def __init__(self, status=200, body=b"{}"):
        self.calls = []
        self.answer = None if status is None else ApiResponse(status, body)

    async def request(self, call):
        self.calls.append(call)
        return self.answer


async def outcome(requests, *exchanges, is_wanted=lambda: True):
    """What became of the exchanges of plugins: "done" or the message of the failure."""
    try:
        async with asyncio.timeout(5):
            await perform_effects(requests, [("Plugin", each) for each in exchanges], is_wanted)
    except EffectError as error:
        return str(error)
    return "done"


@pytest.fixture
def scene():
    return waiting_for_its_claim()


def waiting_for_its_claim(gates=""):
    """A pod whose claim is bound by a write and an answer, with feature gates."""
    made = Scene(configuration=replace(default_configuration(), feature_gates=parse_feature_gates([gates])))
    made.requests = Requests()
    made.dispatcher.request = made.requests.request
    made.node()
    made.add = lambda *objects: [made.cache.listers.of(type(each)).set(each) for each in objects]
    made.add(delayed_class(), claim(), volume("v"))
    made.pending.changed(pod_with("c", cpu="1"))
    return made


async def attempt(scene):
    await scene.attempt()
    await settle(scene)


async def settle(scene):
    """Let the pre-bind look once more, and what it starts run."""
    for _ in range(20):
        await asyncio.sleep(0.01)
        await scene.dispatcher.run()


async def test_a_pod_is_bound_once_its_claim_is(scene):
    await attempt(scene)
    assert [call.path for call in scene.requests.calls] == ["/api/v1/persistentvolumes/v"]
    assert scene.binder.bindings == []
    scene.add(volume("v", version="2", claim_ref=ref()), claim(version="2", volume="v", bound=True))
    await settle(scene)
    assert scene.binder.bindings == [("p", "n1")]
    assert scene.cache.node_of("p") == "n1"


async def test_a_pod_whose_deletion_begins_gives_all_back_before_its_bind(scene):
    await attempt(scene)
    scene.pending.changed(pod_with("c", cpu="1", deleting=True, resource_version="2"))
    await settle(scene)
    assert (scene.binder.bindings, scene.cache.node_of("p")) == ([], None)


async def test_a_refused_write_gives_the_volume_the_room_and_the_pod_back(scene):
    scene.requests.answer = ApiResponse(403, b"{}")
    await attempt(scene)
    assert (scene.binder.bindings, scene.cache.node_of("p")) == ([], None)
    assert "persistentvolume v: status 403" in scene.said()[-1][-1]
    scene.after(100)
    await attempt(scene)
    assert len(scene.requests.calls) == 2, "the volume is free to be chosen again"


async def test_the_node_is_written_on_a_pod_whose_bind_takes_a_while(scene):
    asked = []
    answer = scene.requests.request
    scene.dispatcher.request = lambda call: asked.append([*scene.dispatcher.nominations]) or answer(call)
    await attempt(scene)
    assert asked == [[("p", "n1")]], "before anything else is written"
    assert scene.dispatcher.patches == []
    assert scene.queue.nominator.nominated_node("p") is None, "it is counted on the node already"


async def test_no_node_is_written_where_the_gate_is_off():
    scene = waiting_for_its_claim("NominatedNodeNameForExpectation=false")
    await attempt(scene)
    assert scene.dispatcher.nominations == []
    assert len(scene.requests.calls) == 1


async def test_no_node_is_written_on_a_pod_that_is_bound_at_once(scene):
    scene.pending.gone("p")
    scene.pod("quick")
    await attempt(scene)
    assert scene.binder.bindings == [("quick", "n1")]
    assert scene.dispatcher.nominations == []


async def test_a_node_that_is_written_already_is_not_written_again(scene):
    scene.pending.changed(pod_with("c", cpu="1", nominated="n1", resource_version="2"))
    await attempt(scene)
    assert scene.dispatcher.nominations == []
    assert len(scene.requests.calls) == 1


async def test_a_node_that_cannot_be_written_holds_nothing_up(scene):
    scene.dispatcher.takes_nominations = False
    await attempt(scene)
    assert len(scene.requests.calls) == 1


@pytest.mark.parametrize("taken", [True, False])
async def test_the_node_is_taken_back_with_the_condition_if_the_pod_is_not_bound(scene, taken):
    scene.dispatcher.takes_nominations = taken
    scene.requests.answer = ApiResponse(403, b"{}")
    await attempt(scene)
    assert scene.dispatcher.nominations == [("p", "n1"), ("p", None)]
    assert [reason for _, reason, _ in scene.dispatcher.patches] == ["SchedulerError"]


async def test_a_pod_deleted_while_its_claim_is_bound_leaves_nothing_behind(scene):
    await attempt(scene)
    scene.pending.gone("p")
    await settle(scene)
    assert (scene.binder.bindings, scene.cache.node_of("p")) == ([], None)
    scene.pending.changed(pod_with("c", name="other", cpu="1"))
    await attempt(scene)
    assert len(scene.requests.calls) == 2


async def test_stopping_ends_the_waits_without_a_word(scene):
    await scene.attempt()
    await settle(scene)
    scene.scheduler.stop()
    scene.add(volume("v", version="2", claim_ref=ref()), claim(version="2", volume="v", bound=True))
    await settle(scene)
    assert (scene.binder.bindings, scene.said()) == ([], [])
    assert scene.cache.node_of("p") == "n1"


@pytest.mark.parametrize("begun", [True, False])
async def test_a_step_that_somebody_cancels_gives_the_room_and_the_pod_back(scene, caplog, begun):
    scene.step()
    if begun:
        await settle(scene)
    (task,) = (each for each in asyncio.all_tasks() if each.get_name() == "pre-bind")
    task.cancel()
    await settle(scene)
    assert (scene.binder.bindings, scene.cache.node_of("p")) == ([], None)
    assert scene.sub_queue_of() is SubQueue.ERROR_BACKOFF
    assert "pod='default/p'" in caplog.text


async def test_a_stop_leaves_the_pod_to_whoever_schedules_next(scene):
    await attempt(scene)
    scene.scheduler.stop()
    await settle(scene)
    assert (scene.binder.bindings, scene.said()) == ([], [])


def exchange(*steps, told=None):
    """One that makes these steps and keeps what it is told."""

    def conversation():
        for step in steps:
            if isinstance(step, Exception):
                raise step
            answer = yield step
            if told is not None:
                told.append(answer)

    return Exchange(conversation, lambda: None, "about")


GET = ApiCall("GET", "/x", "x")


async def test_an_exchange_is_told_the_answer_to_each_request():
    requests, told = Requests(body=b"[]"), []
    put = ApiCall("PATCH", "/y", "y", {"a": 1}, "application/merge-patch+json", versioned=True)
    assert await outcome(requests, exchange(GET, 0.001, put, told=told)) == "done"
    assert [(call.method, call.path, call.body, call.versioned) for call in requests.calls] == [
        ("GET", "/x", None, False),
        ("PATCH", "/y", b'{"a":1}', True),
    ]
    assert [each and each.body for each in told] == [b"[]", None, b"[]"]


async def test_exchanges_follow_one_another():
    requests = Requests()
    assert await outcome(requests, exchange(GET, 0.001, GET), exchange(ApiCall("GET", "/z", "z"))) == "done"
    assert [call.path for call in requests.calls] == ["/x", "/x", "/z"]


async def test_a_pod_that_is_not_wanted_any_more_writes_and_waits_no_longer():
    requests = Requests()
    assert await outcome(requests, exchange(GET), exchange(5.0), is_wanted=lambda: False) == "done"
    assert requests.calls == []


def test_a_conversation_waits_ever_longer_until_something_holds():
    asked = []
    pauses = list(wait_until(lambda: asked.append(1) or len(asked) > 9, 600, "about"))
    assert (pauses[:3], pauses[-1]) == ([0.01, 0.02, 0.04], 1.0)
    with pytest.raises(EffectError, match="about: context deadline exceeded"):
        list(wait_until(lambda: False, 0.05, "about"))


async def test_an_exchange_that_fails_ends_it_with_its_text():
    requests = Requests()
    message = await outcome(requests, exchange(GET, EffectError("no way"), GET), exchange(GET))
    assert message == 'running PreBind plugin "Plugin": no way'
    assert len(requests.calls) == 1


async def test_an_exchange_hears_what_was_answered_even_if_the_pod_is_not_wanted_any_more():
    requests, told = Requests(), []
    assert await outcome(requests, exchange(GET, GET, told=told), is_wanted=lambda: not requests.calls) == "done"
    assert (len(requests.calls), len(told)) == (1, 1)


async def test_an_exchange_tells_events():
    notice, told = Notice("Normal", "Reason", "Scheduling", "note"), []
    await perform_effects(Requests(), [("Plugin", exchange(notice))], lambda: True, notify=told.append)
    assert told == [notice]


async def test_what_no_bind_waits_for_is_performed_and_what_fails_is_logged(scene, caplog):
    scene.scheduler.later.perform(exchange(GET))
    scene.scheduler.later.perform(exchange(EffectError("no way")))
    await settle(scene)
    assert [call.path for call in scene.requests.calls] == ["/x"]
    assert "a write was given up about='about' problem=no way" in caplog.text
