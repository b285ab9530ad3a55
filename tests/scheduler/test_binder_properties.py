import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scheduler.binder_scene import Scene

from bayplan.api.errors import AmbiguousError, UnreachableError
from bayplan.api.response import ApiResponse
from bayplan.scheduler.binder import BindError, BindResult


class Script:
    """An API server as seen by the binder: each POST and GET goes as drawn; what happened is known exactly."""

    def __init__(self, draw):
        self.draw = draw
        self.node = ""
        self.alive = True

    async def request(self, method, path, **_):
        await asyncio.sleep(0)
        how = self.draw(method)
        if how == "unreachable":
            raise UnreachableError("x")
        if how == "lost before":
            raise AmbiguousError("x")
        if how == "delete":
            self.alive = False
        if how == "steal" and not self.node:
            self.node = "n2"
        answer = self._post() if method == "POST" else self._get()
        if how == "lost after":
            raise AmbiguousError("x")
        if how == "breaks after":
            raise RuntimeError("x")
        if how == "cancelled after":
            raise asyncio.CancelledError
        return ApiResponse(503, b"") if how == "error after" else answer

    def _post(self):
        if not self.alive:
            return ApiResponse(404, b'{"reason": "NotFound"}')
        if self.node:
            return ApiResponse(409, b"")
        self.node = "n1"
        return ApiResponse(201, b"")

    def _get(self):
        if not self.alive:
            return ApiResponse(404, b'{"reason": "NotFound"}')
        body = {"metadata": {"uid": "u1"}, "spec": {"nodeName": self.node} if self.node else {}}
        return ApiResponse(200, json.dumps(body).encode())


async def test_an_api_server_out_of_reach_while_in_doubt_leaves_the_doubt():
    # The first post may still be on its way through the server, so that only the pod itself can tell.
    hows = {"POST": iter(["lost before", "unreachable", "ok"]), "GET": iter(["ok", "unreachable", "ok"])}
    assert await Scene(None, Script(lambda method: next(hows[method]))).bind() is BindResult.BOUND
    assert next(hows["POST"], None) is None


HOWS = st.sampled_from(
    [
        *("ok", "unreachable", "lost before", "lost after", "error after", "delete", "steal"),
        *("breaks after", "cancelled after"),
    ]
)


@pytest.mark.parametrize("how", ["breaks after", "cancelled after"])
async def test_a_client_that_breaks_leaves_a_doubt_and_no_more(how):
    hows = {"POST": iter([how]), "GET": iter([how, "ok"])}
    scene = Scene(None, Script(lambda method: next(hows[method])))
    assert await scene.bind() is BindResult.BOUND
    assert len(scene.doubts) == 1


async def test_a_bind_that_is_told_to_end_ends():
    bind = asyncio.create_task(Scene(None, Script(lambda _: "lost before")).bind())
    await asyncio.sleep(0)
    bind.cancel()
    with pytest.raises(asyncio.CancelledError):
        await bind


@settings(max_examples=200)
@given(st.lists(HOWS, max_size=20))
def test_whatever_happens_on_the_way_the_binder_tells_the_truth(hows):
    left = iter(hows)
    api = Script(lambda _: next(left, "ok"))
    scene = Scene(None, api)
    scene.binder.request_timeout = 0.0
    try:
        result = asyncio.run(scene.bind())
    except BindError:
        result = None
    if result is BindResult.BOUND:
        assert api.node == "n1"
    elif result is BindResult.GONE:
        assert not api.alive
    elif result is BindResult.TAKEN:
        assert api.node == "n2"
    else:
        assert api.node != "n1"
