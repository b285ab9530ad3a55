import pytest
from tests.faults.api_server import FakeApiServer
from tests.faults.faults import Garbage, Refuse, RequestFault, Reset, status_response
from tests.waiting import Sleeps

from bayplan.api.credentials import Credentials
from bayplan.api.kinds import NODES, PODS
from bayplan.snapshot.listing import TRIES, ForbiddenError, ListingError, list_kind


@pytest.fixture
async def server():
    async with FakeApiServer() as fake:
        yield fake


def pod(name):
    return {
        "metadata": {"name": name, "namespace": "default", "annotations": {"a": "secret"}, "managedFields": [{}]},
        "spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": "secret"}], "command": ["secret"]}]},
        "status": {
            "conditions": [{"type": "Initialized", "status": "False", "message": "secret"}],
            "message": "secret",
        },
    }


async def listed(server, resource=PODS, **options):
    return await list_kind(Credentials(server=server.url), resource, **{"sleep": Sleeps(), **options})


async def test_pages_make_one_list_of_one_version(server):
    for number in range(7):
        server.put(PODS.path, pod(f"p{number}"))
    found = await listed(server, page_size=3)
    assert [each.metadata.name for each in found.objects] == [f"p{number}" for number in range(7)]
    assert server.lists(PODS.path) == 3
    assert all("resourceVersion" not in seen.query for seen in server.requests)


async def test_a_list_that_outlives_its_version_is_begun_anew(server):
    for number in range(5):
        server.put(PODS.path, pod(f"p{number}"))
    expired = []

    class Expired(RequestFault):
        """Answers pages but the first as if their version were gone."""

        async def serve(self, request, act):
            if "continue" not in request.query:
                return await act()
            expired.append(request.query["continue"])
            return status_response(410, "Expired")

    # The second page is gone twice; then all of it is asked for in one piece.
    server.inject(Expired(), path=PODS.path, times=5)
    found = await listed(server, page_size=2)
    assert len(expired) == 2
    assert [each.metadata.name for each in found.objects] == [f"p{number}" for number in range(5)]


async def test_secrets_annotations_and_noise_do_not_arrive(server):
    server.put(PODS.path, pod("p"))
    (found,) = (await listed(server)).objects
    assert "secret" not in repr(found)
    assert "Initialized" not in repr(found)


async def test_a_missing_right_is_told_from_other_refusals(server):
    server.inject(Refuse(403, "Forbidden"), path=PODS.path)
    with pytest.raises(ForbiddenError, match="pods: 403 Forbidden: injected"):
        await listed(server)
    server.inject(Refuse(400, "BadRequest"), path=PODS.path)
    with pytest.raises(ListingError, match="pods: 400 BadRequest: injected") as raised:
        await listed(server)
    assert not isinstance(raised.value, ForbiddenError)


async def test_a_kind_that_is_not_served_has_no_objects(server):
    server.inject(Refuse(404, "NotFound"), path=NODES.path)
    assert (await listed(server, NODES)).objects == []


@pytest.mark.parametrize("fault", [Refuse(503), Refuse(429, retry_after=3), Reset()])
async def test_trouble_of_the_api_server_is_waited_for(server, fault):
    server.put(PODS.path, pod("p"))
    server.inject(fault, path=PODS.path, times=3)
    sleeps = Sleeps()
    assert len((await listed(server, sleep=sleeps)).objects) == 1
    # The HTTP client itself sends a read again, once, if the connection was cut.
    assert 1 <= len(sleeps.delays) <= 3
    if getattr(fault, "retry_after", None):
        assert min(sleeps.delays) >= 3


@pytest.mark.parametrize("fault", [Refuse(503), Reset()])
async def test_trouble_that_does_not_end_is_an_error(server, fault):
    server.inject(fault, path=PODS.path, times=100)
    sleeps = Sleeps()
    with pytest.raises(ListingError, match=r"^pods: "):
        await listed(server, sleep=sleeps)
    assert len(sleeps.delays) == TRIES - 1


async def test_an_answer_that_is_no_list_is_an_error(server):
    server.inject(Garbage(), path=PODS.path)
    with pytest.raises(ListingError, match="the list is not readable"):
        await listed(server)


async def test_an_object_that_cannot_be_read_is_named_and_left_out(server):
    server.put(PODS.path, pod("good"))
    bad = pod("bad")
    bad["spec"]["nodeName"] = 7
    server.put(PODS.path, bad)
    found = await listed(server)
    assert [each.metadata.name for each in found.objects] == ["good"]
    assert found.unreadable == ['Pod "default/bad": spec.nodeName: Invalid value: integer: must be a string']
