import json

import pytest
from tests.builders import make_pod_info
from tests.scheduler.extender.scene import at, clients

from bayplan.api.errors import UnreachableError
from bayplan.api.response import ApiResponse
from bayplan.config.connections import Extender, ExtenderManagedResource
from bayplan.framework.interface import Binding
from bayplan.scheduler.binder import BindError, BindResult
from bayplan.scheduler.extender.cycle import ExtenderBinder
from bayplan.scheduler.turns import Turns

GPU = "example.com/gpu"
BINDS = Extender(bind_verb="bind")


class Pods:
    """The API server's side of one unbound pod, or of one on `node`; remembers the bindings posted and the doubts."""

    def __init__(self, node=""):
        self.pod = {"metadata": {"uid": "gpu"}, "spec": {"nodeName": node} if node else {}}
        self.posts = []
        self.doubts = []

    async def request(self, method, path, **_):
        if method == "POST":
            self.posts.append(path)
        return ApiResponse(201 if method == "POST" else 200, json.dumps(self.pod).encode())

    async def bind(self, client, uid="gpu"):
        binder = ExtenderBinder(
            self,
            extender=client,
            assumed=lambda uid: make_pod_info("p", uid=uid, requests={GPU: "1"} if uid == "gpu" else None),
            node_exists=lambda name: True,
            confirmed_node=lambda uid: None,
            on_ambiguous=lambda: self.doubts.append(1),
        )
        return await binder.bind(Binding("default", "p", uid, "n1"), Turns(1).turn("default"))


async def test_an_interested_extender_binds(stack, server):
    server.answers = {"bind": lambda body: {"Error": ""}}
    (client,) = clients(stack, at(server, BINDS, managed_resources=(ExtenderManagedResource(GPU),)))
    api = Pods()
    assert await api.bind(client) is BindResult.BOUND
    assert server.calls == [("bind", {"PodName": "p", "PodNamespace": "default", "PodUID": "gpu", "Node": "n1"})]
    assert api.posts == []
    assert await api.bind(client, "plain") is BindResult.BOUND
    assert (len(server.calls), len(api.posts)) == (1, 1)


@pytest.mark.parametrize(
    ("ignorable", "node", "posts"), [(False, "n1", 0), (True, "", 1)], ids=["bound after all", "ignorable"]
)
async def test_a_bind_that_an_extender_refuses_may_come_to_pass(stack, server, ignorable, node, posts):
    server.answers = {"bind": lambda body: {"Error": "no"}}
    api = Pods(node)
    assert await api.bind(*clients(stack, at(server, BINDS, ignorable=ignorable))) is BindResult.BOUND
    assert len(api.posts) == posts


async def test_a_bind_that_an_extender_refuses_fails_with_its_words_if_the_pod_is_unbound(stack, server):
    server.answers = {"bind": lambda body: {"Error": "no"}}
    api = Pods()
    with pytest.raises(BindError, match=r"^no$"):
        await api.bind(*clients(stack, at(server, BINDS)))
    assert (len(api.doubts), api.posts) == (1, [])


def closed():
    raise UnreachableError("nothing is written without the lease")


async def test_an_extender_is_not_asked_to_bind_when_no_write_may_start(stack, server):
    (client,) = clients(stack, at(server, BINDS), admit=closed)
    api = Pods()
    with pytest.raises(BindError, match="without the lease"):
        await api.bind(client)
    assert server.calls == []
    assert (api.doubts, api.posts) == ([], [])


async def test_a_bind_of_an_extender_ends_in_the_time_it_was_admitted_for(stack, server):
    server.answers = {"bind": lambda body: {"Error": ""}}
    (client,) = clients(stack, at(server, BINDS), admit=lambda: 60.0)
    assert await Pods().bind(client) is BindResult.BOUND
    (late,) = clients(stack, at(server, BINDS), admit=lambda: 1e-9)
    with pytest.raises(BindError, match="deadline exceeded"):
        await Pods().bind(late)
