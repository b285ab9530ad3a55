import pytest
from tests.scheduler.dispatcher_scene import Scene, warnings

from bayplan.api.errors import AmbiguousError, UnreachableError
from bayplan.scheduler import dispatcher as dispatcher_module
from bayplan.scheduler.api_calls import ApiCall


@pytest.fixture(autouse=True)
def _no_delays(monkeypatch):
    monkeypatch.setattr(dispatcher_module, "_RETRY_DELAYS_SECONDS", (0.0, 0.0, 0.0))


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_a_request_gives_the_last_answer_and_none_if_there_was_none(method):
    scene = Scene()
    scene.client.answers["v"] = [503, AmbiguousError("lost"), 429]
    scene.client.answers["w"] = [AmbiguousError("lost")] * 4
    scene.client.answers["x"] = [409]
    answers = [await scene.dispatcher.request(ApiCall(method, path, None, "x", path)) for path in ("v", "w", "x")]
    assert [answer and answer.status for answer in answers] == [429, None, 409]
    assert scene.client.started == ["v"] * 3 + ["w"] * 4 + ["x"]


@pytest.mark.parametrize("problem", [409, 500, 503, 504, AmbiguousError("lost"), UnreachableError("refused")], ids=repr)
async def test_a_patch_is_sent_again_after_what_may_pass(problem):
    scene = Scene.started()
    scene.client.answers["u"] = [problem] * 3
    scene.patch("u")
    await scene.drain()
    assert scene.client.started == ["u"] * 4
    assert scene.lost == []


@pytest.mark.parametrize("problem", [400, 401, 403, 404, 422, 429, 507])
async def test_a_patch_is_given_up_at_once_after_what_does_not_pass(problem, caplog):
    scene = Scene.started()
    scene.client.answers["u"] = [problem] * 9
    scene.patch("u", b"1")
    await scene.drain()
    assert scene.client.started == ["u"]
    assert scene.lost == [("u", b"1")]
    # A pod that is gone or was recreated is nothing to worry about.
    assert len(warnings(caplog)) == (0 if problem in {404, 422} else 1)


async def test_a_call_is_given_up_after_four_tries(caplog):
    scene = Scene.started()
    scene.events.answers["e"] = [503] * 9
    scene.client.answers["u"] = [AmbiguousError("lost")] * 9
    scene.send("e")
    scene.patch("u", b"1")
    await scene.drain()
    assert (scene.events.started, scene.client.started) == (["e"] * 4, ["u"] * 4)
    assert scene.lost == [("u", b"1")]
    assert sorted("lost" in r.message for r in warnings(caplog)) == [False, True]


async def test_an_event_that_exists_already_was_created_by_a_try_whose_answer_was_lost(caplog):
    scene = Scene.started()
    scene.events.answers["e"] = [AmbiguousError("lost"), 409]
    scene.send("e")
    await scene.drain()
    assert scene.events.started == ["e", "e"]
    assert warnings(caplog) == []
