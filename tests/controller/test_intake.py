import asyncio
from collections import Counter

import aiohttp
import kopf
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.controller.kubernetes_api import PODS, KubernetesApi, pod
from tests.waiting import until

from bayplan.api.objects import Pod
from bayplan.controller.intake import (
    Access,
    PendingPod,
    build_registry,
    field_selector,
    operator_settings,
    read_event,
)

REST = "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"


@pytest.mark.parametrize(
    ("names", "selector"),
    [
        ({"bayplan"}, f"spec.schedulerName=bayplan,{REST}"),
        ({"default-scheduler"}, f"spec.schedulerName=default-scheduler,{REST}"),
        ({"a", "b"}, f"spec.schedulerName!=default-scheduler,{REST}"),
        ({"a", "default-scheduler"}, REST),
        ({"a,b=c\\d"}, f"spec.schedulerName=a\\,b\\=c\\\\d,{REST}"),
        ({"x,spec.nodeName!="}, f"spec.schedulerName=x\\,spec.nodeName!\\=,{REST}"),
    ],
)
def test_the_server_selects_unscheduled_pods_of_our_profiles(names, selector):
    assert field_selector(names) == selector


def event(kind, body):
    return {"type": kind, "object": body}


BODY = {
    "metadata": {"name": "web", "namespace": "shop", "uid": "u", "annotations": {"secret": "x"}},
    "spec": {"schedulerName": "bayplan", "containers": [{"name": "c", "env": [{"name": "A"}]}]},
    "status": {"phase": "Pending"},
}


@pytest.mark.parametrize("kind", [None, "ADDED", "MODIFIED"])
def test_a_pod_is_told_as_it_is_now(kind):
    told = read_event(event(kind, BODY))
    assert (told.uid, told.key, told.error) == ("u", "shop/web", "")
    assert isinstance(told.pod, Pod)
    assert told.pod.spec.scheduler_name == "bayplan"
    assert "secret" not in repr(told)


def test_a_deleted_pod_is_told_as_gone_even_if_it_cannot_be_read():
    assert read_event(event("DELETED", BODY)) == PendingPod("u", "shop/web", None)
    assert read_event(event("DELETED", {**BODY, "spec": 7})) == PendingPod("u", "shop/web", None)


def test_a_pod_that_cannot_be_read_is_told_by_name_with_the_reason():
    told = read_event(event("ADDED", {**BODY, "spec": {"priority": "high"}}))
    assert (told.uid, told.key, told.pod) == ("u", "shop/web", None)
    assert "spec.priority" in told.error


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
FIELDS = [
    "metadata",
    "spec",
    "status",
    "name",
    "uid",
    "containers",
    "resources",
    "requests",
    "cpu",
    "priority",
    "labels",
]
LIKE_A_POD = st.recursive(
    JSON, lambda inner: st.dictionaries(st.sampled_from(FIELDS), inner) | st.lists(inner, max_size=2), max_leaves=15
)


@given(
    st.fixed_dictionaries({}, optional={"type": st.sampled_from([None, "ADDED", "DELETED", 7]), "object": LIKE_A_POD})
)
@example({"type": "ADDED", "object": {"metadata": {"generation": 2**80}, "spec": {"priority": 10**400}}})
@example({"type": "ADDED", "object": {"metadata": {"uid": ["u"], "name": {"a": 1}}}})
def test_nothing_that_json_can_hold_makes_reading_raise(told):
    read = read_event(told)
    assert isinstance(read.uid, str)
    assert isinstance(read.key, str)
    assert (read.pod is None) or not read.error


def test_a_body_nested_beyond_reason_is_told_by_name():
    body = {}
    for _ in range(3000):
        body = {"metadata": body, "spec": body, "status": body}
    assert read_event(event("ADDED", {**body, "metadata": {"name": "deep", "namespace": "x"}})).key == "x/deep"


def test_kopf_is_set_up_to_watch_and_to_write_nothing():
    settings = operator_settings({"bayplan"})
    assert settings.watching.field_selectors["", "v1", "pods"] == field_selector({"bayplan"})
    assert (settings.posting.enabled, settings.scanning.disabled) == (False, True)
    assert settings.process.ultimate_exiting_timeout is None


def test_the_storages_leave_an_object_as_it_is():
    settings = operator_settings({"bayplan"})
    body, patch = kopf.Body(BODY), kopf.Patch()
    diffs, progress = settings.persistence.diffbase_storage, settings.persistence.progress_storage
    essence = diffs.build(body=body)
    diffs.store(body=body, patch=patch, essence=essence)
    key = kopf.HandlerId("intake")
    progress.store(key=key, record={}, body=body, patch=patch)
    progress.touch(body=body, patch=patch, value="now")
    progress.purge(key=key, body=body, patch=patch)
    assert dict(patch) == {}
    assert (diffs.fetch(body=body), progress.fetch(key=key, body=body)) == (None, None)
    assert progress.clear(essence=essence) == essence == {}


async def test_kopf_tells_of_pods_and_writes_nothing():
    told = []
    async with KubernetesApi() as server:
        server.put(PODS, pod("a"))
        server.put(PODS, pod("other", scheduler="default-scheduler"))
        access = Access(server.url, _session)
        stop = asyncio.Event()
        running = asyncio.create_task(
            kopf.operator(
                registry=build_registry(access, told.append),
                settings=operator_settings({"bayplan"}),
                clusterwide=True,
                standalone=True,
                stop_flag=stop,
            )
        )
        await until(lambda: len(told) == 1)
        server.put(PODS, pod("b"))
        await until(lambda: len(told) == 2)
        server.delete(PODS, "default/a")
        await until(lambda: len(told) == 3)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert [(t.key, t.pod is None) for t in told] == [
            ("default/a", False),
            ("default/b", False),
            ("default/a", True),
        ]
        assert Counter(seen.method for seen in server.requests).keys() == {"GET"}
        watched = [seen for seen in server.requests if seen.path == PODS]
        assert {seen.query["fieldSelector"] for seen in watched} == {field_selector({"bayplan"})}
        assert {seen.path for seen in server.requests} <= {"/api", "/api/v1", "/apis", PODS}


async def _session():
    return aiohttp.ClientSession()
