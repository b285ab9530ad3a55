"""Objects that cannot be decoded and handlers that raise stop nobody else."""

import pytest
from tests.api.reflecting import PODS, View, pod, reflecting
from tests.faults.faults import (
    StreamError,
)
from tests.waiting import until


async def test_an_object_that_cannot_be_decoded_is_reported_once_per_version_and_the_others_go_on(server):
    reports = []
    bad = {"metadata": {"name": "bad", "namespace": "default"}, "spec": {"containers": "none"}}
    server.put(PODS, bad)
    server.put(PODS, pod("good"))
    server.inject(StreamError(410), times=2)
    async with reflecting(server, on_undecodable=lambda name, error: reports.append((name, error))) as (
        reflector,
        view,
    ):
        await until(lambda: reflector.relists_total == 2)
        assert list(view.objects) == ["good"]
        assert [name for name, _ in reports] == ["default/bad"]
        assert "$.spec.containers" in reports[0][1]
        await until(lambda: server.watches(PODS) == 3)
        server.put(PODS, bad)
        server.put(PODS, pod("next"))
        await until(lambda: "next" in view.objects)
        assert len(reports) == 2
        server.put(PODS, pod("bad"))
        await until(lambda: "bad" in view.objects)


@pytest.mark.parametrize(("keep", "left"), [(True, ["a"]), (False, [])])
async def test_the_readable_version_before_an_undecodable_one_is_kept_or_deleted_as_asked(server, keep, left):
    server.put(PODS, pod("a"))
    reports = []
    async with reflecting(server, keep_undecodable=keep, on_undecodable=lambda name, error: reports.append(name)) as (
        _,
        view,
    ):
        await until(lambda: server.watches(PODS))
        server.put(PODS, {"metadata": {"name": "a", "namespace": "default"}, "spec": 7})
        await until(lambda: reports)
        assert list(view.objects) == left
        server.delete(PODS, "default/a")
        server.put(PODS, pod("b"))
        await until(lambda: "b" in view.objects)
        assert list(view.objects) == ["b"]


async def test_a_handler_that_raises_is_logged_with_the_objects_name_and_the_stream_goes_on(server, caplog):
    view = View()

    def fail(call):
        if call == "add a":
            raise RuntimeError("boom")

    view.hook = fail
    server.put(PODS, pod("a"))
    server.put(PODS, pod("b"))
    async with reflecting(server, view=view) as (reflector, _):
        await until(lambda: reflector.synced)
        assert list(view.objects) == ["a", "b"]
    assert "'default/a'" in caplog.text
