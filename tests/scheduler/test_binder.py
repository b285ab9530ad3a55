import asyncio
import json
import re

import pytest
from tests.faults.api_server import FakeApiServer
from tests.faults.faults import BlackHole, Delay, DropReply, Garbage, HalfReply, Redirect, Refuse, RequestFault, Reset
from tests.scheduler.binder_scene import BINDING, PODS, Scene

from bayplan.api.client import ApiClient
from bayplan.api.credentials import Credentials
from bayplan.api.errors import AmbiguousError
from bayplan.api.response import ApiResponse
from bayplan.scheduler.binder import BindError, BindResult
from bayplan.scheduler.turns import Turns


@pytest.fixture
async def scene():
    async with FakeApiServer() as server:
        client = ApiClient(Credentials(server=server.url))
        made = Scene(server, client)
        made.put()
        yield made
        await client.close()


class RefuseAfter(RequestFault):
    """Changes the world, then refuses."""

    def __init__(self, code, change, *, retry_after=None):
        self.code, self.change, self.retry_after = code, change, retry_after

    async def serve(self, request, act):
        self.change()
        return await Refuse(self.code, "Conflict", self.retry_after).serve(request, act)


async def test_an_unbound_pod_is_bound_with_one_request(scene):
    assert await scene.bind() is BindResult.BOUND
    (seen,) = scene.server.requests
    assert json.loads(seen.body)["metadata"]["uid"] == "u1"
    assert (scene.bound_to(), len(scene.doubts)) == ("n1", 0)


@pytest.mark.parametrize("node", ["n1", "n2"], ids=["our node", "another node"])
async def test_a_pod_that_somebody_else_bound_is_no_success_of_ours_and_counts_as_a_conflict(scene, node):
    scene.put(nodeName=node)
    assert await scene.bind() is BindResult.TAKEN
    assert (scene.count("POST"), len(scene.doubts), len(scene.conflicts)) == (1, 0, 1)


@pytest.mark.parametrize(
    "pod",
    [
        {"uid": "u2"},
        {"uid": "u2", "nodeName": "n1"},
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {"phase": "Failed"},
        {"phase": "Succeeded"},
    ],
    ids=["recreated", "recreated on our node", "deleting", "failed", "succeeded"],
)
async def test_a_pod_that_is_no_longer_ours_to_place_is_gone(scene, pod):
    scene.put(**pod)
    scene.fail(Refuse(409, "Conflict"))
    assert await scene.bind() is BindResult.GONE
    assert (len(scene.doubts), len(scene.conflicts)) == (0, 1)


async def test_a_conflict_with_an_earlier_post_of_ours_counts_as_none(scene):
    # The first post is answered with an error, and takes effect only before the second.
    scene.fail(RefuseAfter(502, lambda: None))
    scene.fail(RefuseAfter(409, lambda: scene.put(nodeName="n1")))
    assert await scene.bind() is BindResult.BOUND
    assert scene.conflicts == []


async def test_a_deleted_pod_is_gone(scene):
    scene.server.delete(PODS, "default/web")
    assert await scene.bind() is BindResult.GONE
    assert scene.count("POST") == 1


async def test_a_404_that_the_api_server_did_not_give_is_no_sign_that_the_pod_is_gone(scene):
    scene.fail(Refuse(404, ""))
    scene.fail(Refuse(404, ""), method="GET", times=2)
    with pytest.raises(BindError, match="status 404"):
        await scene.bind()
    assert scene.count("GET") == 3


async def test_a_post_that_waits_for_the_rate_limit_is_not_measured(scene):
    turns = Turns(3, slow_seconds=0.01)
    turn = turns.turn("default")

    class Client:
        async def request(self, *_, on_send, **__):
            await asyncio.sleep(0.03)
            assert (turns.quick, turns.slow) == (1, 0)
            on_send()
            await asyncio.sleep(0.03)
            assert (turns.quick, turns.slow) == (0, 1)
            return ApiResponse(201, b"")

    scene.binder.client = Client()
    assert await scene.binder.bind(BINDING, turn) is BindResult.BOUND


@pytest.mark.parametrize(("code", "reason"), [(409, "Conflict"), (404, "NotFound")])
async def test_a_pod_that_is_there_and_unbound_after_a_conflict_or_404_is_an_error(scene, code, reason):
    scene.fail(Refuse(code, reason))
    with pytest.raises(BindError, match=rf"^status {code}: {reason}.*injected$"):
        await scene.bind()
    assert len(scene.doubts) == 0


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        *((Refuse(code, "Why"), rf"^status {code}: Why.*injected$") for code in (400, 401, 403, 405, 413, 422, 429)),
        (Redirect("http://127.0.0.1:1/"), "status 307"),
    ],
    ids=repr,
)
async def test_a_refusal_or_redirect_is_an_error_that_says_why(scene, fault, problem):
    scene.fail(fault, times=2)
    with pytest.raises(BindError, match=problem):
        await scene.bind()
    assert (scene.bound_to(), scene.doubts, scene.count("GET")) == (None, [], 0)


@pytest.mark.parametrize("fault", [Refuse(502), Refuse(504), Reset(), BlackHole()], ids=repr)
async def test_a_bind_without_an_answer_is_asked_about_and_posted_again_if_the_pod_is_unbound(scene, fault):
    scene.fail(fault)
    assert await scene.bind() is BindResult.BOUND
    assert (scene.bound_to(), len(scene.doubts)) == ("n1", 1)
    assert [seen.method for seen in scene.server.requests] == ["POST", "GET", "POST"]


@pytest.mark.parametrize("fault", [Refuse(500), Refuse(503), Garbage(), Garbage(b"")], ids=repr)
async def test_an_answer_that_leaves_it_open_is_a_failure_if_the_pod_is_unbound(scene, fault):
    scene.fail(fault)
    with pytest.raises(BindError, match=r"^status"):
        await scene.bind()
    assert (scene.bound_to(), len(scene.doubts)) == (None, 1)
    assert [seen.method for seen in scene.server.requests] == ["POST", "GET"]


WEBHOOK = 'Internal error occurred: failed calling webhook "w": failed to call webhook: Post "https://w": refused'
DENIALS = [
    (500, WEBHOOK),
    (500, 'admission webhook "w" denied the request: no'),
    (403, "pods \"web\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"),
    (403, 'pods "web" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'),
]


@pytest.mark.parametrize(("code", "message"), DENIALS)
async def test_what_admission_refuses_failed_for_certain_and_is_neither_read_nor_posted_again(scene, code, message):
    scene.fail(Refuse(code, "Why", message=message))
    with pytest.raises(BindError, match=f"^status {code}: Why: {re.escape(message)}$"):
        await scene.bind()
    assert [seen.method for seen in scene.server.requests] == ["POST"]
    assert scene.doubts == []


async def test_a_pod_that_waits_for_a_lost_bind_to_expire_is_bound_once_admission_refuses_no_more(scene):
    scene.fail(Refuse(504, "Timeout"))
    scene.fail(Refuse(500, "InternalError", message=WEBHOOK), times=2)
    assert await scene.bind() is BindResult.BOUND
    assert (scene.count("POST"), scene.bound_to()) == (4, "n1")


@pytest.mark.parametrize("error", [Refuse(500, "InternalError"), Refuse(409, "Conflict")], ids=repr)
async def test_a_pod_that_waits_for_a_lost_bind_to_expire_is_bound_once_the_server_has_no_error_any_more(scene, error):
    scene.fail(Refuse(504, "Timeout"))
    scene.fail(error, times=2)
    assert await scene.bind() is BindResult.BOUND
    assert (scene.count("POST"), scene.bound_to()) == (4, "n1")


async def test_a_bind_that_admission_refuses_after_one_was_lost_fails_after_a_few_posts(scene):
    scene.fail(Refuse(504, "Timeout"))
    scene.fail(Refuse(500, "InternalError", message=WEBHOOK), times=100)
    with pytest.raises(BindError, match=r"still unbound after 5 attempts: status 500: InternalError: .*failed calling"):
        await scene.bind()
    assert scene.count("POST") == 5


@pytest.mark.parametrize("fault", [DropReply(), HalfReply(), Delay(0.8)], ids=repr)
async def test_a_bind_whose_answer_was_lost_is_not_posted_twice(scene, fault):
    scene.fail(fault)
    if isinstance(fault, Delay):
        # The server acts later than the client waits: the pod is unbound when first asked about.
        scene.fail(Delay(0.45), method="GET")
    assert await scene.bind() is BindResult.BOUND
    assert (scene.bound_to(), len(scene.doubts)) == ("n1", 1)
    assert scene.count("POST") == 1


@pytest.mark.parametrize(
    "fault", [Refuse(500), Refuse(403), Reset(), BlackHole(), Garbage(), Garbage(b"{}"), Garbage(b'{"kind":"Status"}')]
)
async def test_doubt_lasts_until_the_pod_can_be_read(scene, fault):
    scene.fail(DropReply())
    scene.fail(fault, method="GET", times=3)
    assert await scene.bind() is BindResult.BOUND
    assert (scene.count("POST"), scene.count("GET")) == (1, 4)


async def test_a_conflict_that_cannot_be_explained_is_in_doubt(scene):
    scene.put(nodeName="n1")
    scene.fail(Refuse(500), method="GET", times=2)
    assert await scene.bind() is BindResult.TAKEN
    assert (scene.count("POST"), len(scene.doubts)) == (1, 1)


@pytest.mark.parametrize("unread", [0, 2])
async def test_a_conflict_is_not_posted_again(scene, unread):
    scene.fail(Refuse(409, "Conflict"))
    scene.fail(Refuse(500), method="GET", times=unread)
    with pytest.raises(BindError, match="status 409: Conflict"):
        await scene.bind()
    assert (scene.count("POST"), scene.bound_to()) == (1, None)


async def test_a_watch_that_shows_the_pod_on_our_node_ends_the_doubt(scene):
    scene.fail(RefuseAfter(500, lambda: scene.confirmed.update(u1="n1")))
    assert await scene.bind() is BindResult.BOUND
    assert scene.count("GET") == 0


@pytest.mark.parametrize("confirmed", [{}, {"u1": "n2"}], ids=["not shown", "shown elsewhere"])
async def test_a_pod_bound_elsewhere_while_in_doubt_is_not_ours_whatever_a_watch_shows(scene, confirmed):
    scene.confirmed |= confirmed
    scene.fail(RefuseAfter(500, lambda: scene.put(nodeName="n2")))
    assert await scene.bind() is BindResult.TAKEN
    assert scene.count("POST") == 1


async def test_nothing_is_posted_for_a_node_that_is_gone(scene):
    scene.nodes.clear()
    with pytest.raises(BindError, match="node 'n1' is gone"):
        await scene.bind()
    assert scene.server.requests == []


async def test_nothing_is_posted_again_after_a_429_for_a_node_that_went_meanwhile(scene):
    scene.fail(RefuseAfter(429, scene.nodes.clear, retry_after=0))
    with pytest.raises(BindError, match="node 'n1' is gone"):
        await scene.bind()
    assert [seen.method for seen in scene.server.requests] == ["POST"]


async def test_nothing_is_posted_again_for_a_node_that_goes_while_in_doubt(scene):
    scene.fail(RefuseAfter(502, scene.nodes.clear))
    with pytest.raises(BindError, match="is gone"):
        await scene.bind()
    assert scene.count("POST") == 1


async def test_a_node_that_goes_while_in_doubt_does_not_end_a_bind_that_happened(scene):
    scene.fail(DropReply())
    scene.fail(RefuseAfter(500, scene.nodes.clear), method="GET")
    assert await scene.bind() is BindResult.BOUND


async def test_an_api_server_out_of_reach_is_an_error():
    client = ApiClient(Credentials(server="http://127.0.0.1:1"))
    unreachable = Scene(None, client)
    with pytest.raises(BindError, match="refused"):
        await unreachable.bind()
    assert unreachable.doubts == []
    await client.close()


async def test_an_api_server_that_leaves_every_bind_open_does_not_keep_the_pod_for_ever(scene):
    scene.fail(Refuse(504, "Timeout"), times=100)
    with pytest.raises(BindError, match="still unbound after 5 attempts: status 504: Timeout"):
        await scene.bind()
    assert scene.count("POST") == 5
    assert len(scene.doubts) == 5


class Late:
    """An API server that answers no POST, and acts on the last of them later; GETs show the pod."""

    def __init__(self, posts, seconds):
        self.posts, self.seconds, self.node = posts, seconds, ""

    async def request(self, method, path, **_):
        await asyncio.sleep(0)
        if method == "GET":
            body = {"metadata": {"uid": "u1"}, "spec": {"nodeName": self.node} if self.node else {}}
            return ApiResponse(200, json.dumps(body).encode())
        self.posts -= 1
        if not self.posts:
            asyncio.get_running_loop().call_later(self.seconds, self._act)
        raise AmbiguousError("no answer")

    def _act(self):
        self.node = "n1"


async def test_no_room_is_given_back_while_a_bind_may_still_land():
    late = Scene(None, Late(posts=5, seconds=0.06))
    late.binder.request_timeout = 0.3
    assert await late.bind() is BindResult.BOUND


async def test_a_node_that_goes_while_an_unanswered_bind_may_land_does_not_end_the_doubt():
    late = Scene(None, Late(posts=1, seconds=0.06))
    late.binder.request_timeout = 0.3
    late.binder.on_ambiguous = late.nodes.clear
    assert await late.bind() is BindResult.BOUND


async def test_a_bind_that_is_never_answered_fails_once_it_is_too_late_for_it_to_land():
    late = Scene(None, Late(posts=99, seconds=0))
    with pytest.raises(BindError, match="still unbound after 5 attempts: no answer"):
        await late.bind()
