import asyncio
import contextlib

import pytest
from tests.controller.kubernetes_api import PODS, KubernetesApi, pod
from tests.faults.faults import Garbage, Refuse, RequestFault, Reset

from bayplan.api.client import ApiClient
from bayplan.api.credentials import Credentials
from bayplan.controller import resync as resync_module
from bayplan.controller.intake import field_selector
from bayplan.controller.resync import IntakeResync


class Scene:
    """A resync between a server and sets of UIDs that stand for queue and cache."""

    def __init__(self, server, client, names):
        self.server = server
        self.queued = set()
        self.placed = set()
        self.gone = []
        self.taken = []
        self.resync = IntakeResync(
            client,
            [field_selector({name}) for name in names],
            queued=lambda: self.queued,
            known=lambda uid: uid in self.queued | self.placed,
            gone=self._gone,
            changed=self._changed,
        )

    def _gone(self, uid):
        self.queued.discard(uid)
        self.gone.append(uid)

    def _changed(self, told):
        self.queued.add(told.metadata.uid)
        self.taken.append(told.metadata.name)

    def put(self, name, *, queued=False, **fields):
        metadata = fields.pop("metadata", {})
        obj = pod(name, **fields)
        obj["metadata"] |= {"uid": f"uid-{name}", **metadata}
        self.server.put(PODS, obj)
        if queued:
            self.queued.add(f"uid-{name}")

    async def once(self):
        await self.resync.once()


@contextlib.asynccontextmanager
async def scene(*names):
    async with KubernetesApi() as server:
        client = ApiClient(Credentials(server=server.url), qps=0, burst=1)
        try:
            yield Scene(server, client, names or ("bayplan",))
        finally:
            await client.close()


class Meanwhile(RequestFault):
    """Something happens while the server is about to answer."""

    def __init__(self, happen):
        self.happen = happen

    async def serve(self, request, act):
        answer = await act()
        self.happen()
        return answer


async def test_when_queue_and_cluster_agree_nothing_happens():
    async with scene() as s:
        s.put("a", queued=True)
        for _ in range(3):
            await s.once()
        assert (s.gone, s.taken, s.queued) == ([], [], {"uid-a"})
        assert {seen.path for seen in s.server.requests} == {PODS}


async def test_only_metadata_of_our_pending_pods_is_asked_for():
    async with scene("a", "b") as s:
        await s.once()
        assert [seen.query["fieldSelector"] for seen in s.server.requests] == [
            field_selector({"a"}),
            field_selector({"b"}),
        ]
        assert all("as=PartialObjectMetadataList" in seen.headers["accept"] for seen in s.server.requests)


async def test_a_pod_that_vanished_unseen_leaves_the_queue():
    async with scene() as s:
        s.put("a", queued=True)
        s.queued.add("uid-ghost")
        await s.once()
        assert (s.gone, s.queued) == (["uid-ghost"], {"uid-a"})


async def test_the_last_ghost_leaves_too_though_an_empty_list_has_no_items():
    async with scene() as s:
        s.queued.add("uid-ghost")
        await s.once()
        assert s.gone == ["uid-ghost"]


@pytest.mark.parametrize("change", [{"nodeName": "n1"}, {"scheduler": "other"}], ids=["bound", "other scheduler"])
async def test_a_pod_that_is_no_longer_pending_for_us_leaves_the_queue(change):
    async with scene() as s:
        s.put("a", queued=True, **change)
        await s.once()
        assert s.gone == ["uid-a"]


async def test_the_namesake_of_a_recreated_pod_leaves_the_queue():
    async with scene() as s:
        s.put("a", queued=True)
        s.put("a", metadata={"uid": "uid-new"})
        await s.once()
        assert s.gone == ["uid-a"]


async def test_a_pod_missing_twice_is_fetched_and_one_missing_once_is_not():
    async with scene() as s:
        s.put("late")
        s.put("lost")
        await s.once()
        assert s.taken == []
        s.queued.add("uid-late")
        await s.once()
        assert s.taken == ["lost"]
        await s.once()
        assert s.taken == ["lost"]


async def test_a_pod_on_a_node_or_on_its_way_there_is_not_missing():
    async with scene() as s:
        s.put("assumed")
        s.placed.add("uid-assumed")
        for _ in range(3):
            await s.once()
        assert s.taken == []


async def test_a_pod_that_is_being_deleted_is_not_missing():
    async with scene() as s:
        s.put("a", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
        for _ in range(3):
            await s.once()
        assert s.taken == []


async def test_pods_of_other_schedulers_are_never_fetched():
    async with scene("a", "b") as s:
        s.put("stranger", scheduler="theirs")
        for _ in range(3):
            await s.once()
        assert {seen.path for seen in s.server.requests} == {PODS}


@pytest.mark.parametrize(
    "fault",
    [
        Refuse(403),
        Refuse(410),
        Refuse(500),
        Reset(),
        Garbage(),
        Garbage(b""),
        Garbage(b"{}"),
        Garbage(b'{"metadata":{}}'),
        Garbage(b'{"metadata":{},"items":[{}]}'),
        Garbage(b'{"metadata":{"continue":"x"},"items":7}'),
        Garbage(b'{"metadata":{},"items":[{"metadata":{"uid":"\xff"}}]}'),
    ],
    ids=repr,
)
async def test_an_api_server_that_does_not_answer_leaves_all_as_it_is(fault):
    async with scene("bayplan", "other") as s:
        s.put("a", queued=True)
        s.queued.add("uid-ghost")
        s.put("lost")
        await s.once()
        s.queued.add("uid-ghost2")
        for number in range(2):
            # Also when only one of several lists fails.
            s.server.inject(fault, path=PODS)
            s.gone.clear()
            await s.once()
            assert (s.gone, s.taken) == ([], []), number
        await s.once()
        assert (s.gone, s.taken) == (["uid-ghost2"], ["lost"])


async def test_a_list_of_several_pages_is_read_to_its_end(monkeypatch):
    monkeypatch.setattr(resync_module, "_PAGE", 3)
    async with scene() as s:
        for i in range(10):
            s.put(f"p{i}", queued=True)
        s.queued.add("uid-ghost")
        await s.once()
        assert s.gone == ["uid-ghost"]
        assert s.server.lists(PODS) == 4


async def test_a_list_that_breaks_off_between_pages_leaves_all_as_it_is(monkeypatch):
    monkeypatch.setattr(resync_module, "_PAGE", 3)
    async with scene() as s:
        for i in range(10):
            s.put(f"p{i}", queued=True)
        s.server.inject(Meanwhile(s.server.compact), path=PODS)
        await s.once()
        assert (s.gone, s.server.lists(PODS)) == ([], 2)


async def test_a_pod_queued_while_the_list_was_on_its_way_is_no_ghost():
    async with scene() as s:
        s.server.inject(Meanwhile(lambda: s.put("new", queued=True)), path=PODS)
        await s.once()
        assert s.gone == []


async def test_a_pod_the_intake_tells_of_while_the_list_was_on_its_way_is_not_missing():
    async with scene() as s:
        s.put("a")
        await s.once()
        s.server.inject(Meanwhile(lambda: s.queued.add("uid-a")), path=PODS)
        await s.once()
        assert s.taken == []


@pytest.mark.parametrize(
    "fault", [Refuse(404), Refuse(500), Reset(), Garbage(), Garbage(b"{}"), Garbage(b'{"spec":7}')], ids=repr
)
async def test_a_missing_pod_that_cannot_be_fetched_is_tried_again_next_time(fault):
    async with scene() as s:
        s.put("lost")
        await s.once()
        s.server.inject(fault, path="/pods/lost")
        await s.once()
        assert s.taken == []
        await s.once()
        assert s.taken == ["lost"]


async def test_the_namesake_of_a_missing_pod_is_not_mistaken_for_it():
    async with scene() as s:
        s.put("lost")
        await s.once()
        s.server.inject(Meanwhile(lambda: s.put("lost", metadata={"uid": "uid-new"})), path=PODS)
        await s.once()
        assert s.taken == []


async def test_names_no_path_can_hold_do_not_raise():
    async with scene() as s:
        s.put("..", metadata={"uid": "odd"})
        for _ in range(3):
            await s.once()
        assert s.taken == []


async def test_it_goes_on_for_ever():
    async with scene() as s:
        s.put("lost")
        running = asyncio.create_task(s.resync.run(0.001))
        async with asyncio.timeout(10):
            while not s.taken:  # noqa: ASYNC110  it has no event for tests
                await asyncio.sleep(0.001)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
