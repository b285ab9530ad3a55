"""What is taken for a pod, written on its claims, and given back."""

import pytest
from msgspec.structs import replace
from tests.devices.device_builders import DRIVER, exactly, make_claim, make_rule
from tests.plugins.dynamic_resources.device_scene import (
    NOT_HELPFUL,
    TIME,
    ClaimServer,
    claim,
    claiming,
    perform,
    refused,
    scene,
)

from bayplan.api.device_objects import DeviceClass, DeviceTaintRule, ResourceSlice
from bayplan.api.response import ApiResponse
from bayplan.cache.group_members import POD_GROUP_LABEL
from bayplan.plugins.dynamic_resources.claim_cache import ClaimCache
from bayplan.plugins.dynamic_resources.claim_writes import FINALIZER
from bayplan.plugins.dynamic_resources.stored_claim import PROTOBUF, with_finalizer

REFUSED = ApiResponse(422, b'{"reason": "Invalid", "message": "no"}')


def test_the_allocation_and_the_right_to_use_it_are_written_after_the_finalizer():
    world, server = scene()
    assert perform(world.reserve(claiming("c")), server) == ("done", [])
    first, second = server.calls
    path = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c"
    assert (first.method, first.path, second.path) == ("PATCH", path, f"{path}/status")
    assert first.body == {"metadata": {"uid": "c", "resourceVersion": "1", "finalizers": [FINALIZER]}}
    written = server.stored()
    assert written.status.reserved_for[0].uid == "p"
    assert [each.device for each in written.status.allocation.devices.results] == ["gpu-0"]
    assert written.status.allocation.allocation_timestamp == TIME


def test_a_finalizer_that_is_there_is_not_written_again():
    world, server = scene(claim(finalizers=[FINALIZER]))
    perform(world.reserve(claiming("c")), server)
    assert [call.path.rsplit("/", 1)[1] for call in server.calls] == ["status"]


def test_a_claim_that_is_allocated_is_reserved_and_no_more():
    world, server = scene(claim("c", devices=["gpu-0"], node="n2", users=["q"]))
    assert perform(world.reserve(claiming("c")), server) == ("done", [])
    (call,) = server.calls
    assert call.body["status"] == {"reservedFor": [{"resource": "pods", "name": "p", "uid": "p"}]}
    assert server.stored().status.allocation.allocation_timestamp is None, "it cannot be added any more"


def test_a_claim_that_is_reserved_for_the_pod_is_left_as_it_is():
    world, server = scene(claim("c", devices=["gpu-0"], node="n2", users=["p"]))
    assert perform(world.reserve(claiming("c")), server) == ("done", [])
    assert server.calls == []


def test_two_entries_for_one_claim_reserve_it_once():
    world, server = scene()
    assert perform(world.reserve(claiming("c", "c")), server) == ("done", [])
    assert len(server.stored().status.reserved_for) == 1


def test_claims_are_written_in_their_order():
    world, server = scene(claim("b"), claim("a"))
    perform(world.reserve(claiming("b", "a")), server)
    assert [call.path.split("/")[7] for call in server.calls] == ["b", "b", "a", "a"]


@pytest.mark.parametrize("number", [1, 2])
def test_a_claim_that_others_change_is_read_again_and_written_anew(number):
    world, server = scene()
    server.before[number] = lambda: server.change("c", {"status": {"devices": None}}) or False
    assert perform(world.reserve(claiming("c")), server) == ("done", [])
    assert server.stored().status.reserved_for[0].uid == "p"
    assert [call.method for call in server.calls].count("GET") == 1


def test_one_that_others_change_all_the_time_is_given_up():
    world, server = scene(claim(finalizers=[FINALIZER]))
    server.before = {n: lambda: server.change("c", {"status": {"devices": None}}) or False for n in range(1, 20, 2)}
    message, _ = perform(world.reserve(claiming("c")), server)
    assert message == "add reservation to claim ns/c: the claim was changed by others at each of 5 tries"


def elsewhere(server):
    other = claim("c", devices=["gpu-9"], node="n2", time=TIME)
    server.change("c", {"status": {"allocation": server_form(other)}})


def server_form(made):
    return ClaimServer(None, made).claims["c"]["status"]["allocation"]


def ends(server):
    server.change("c", {})
    server.claims["c"]["metadata"]["deletionTimestamp"] = TIME


@pytest.mark.parametrize(
    ("made", "happens", "text"),
    [
        (claim(), elsewhere, "claim ns/c got allocated elsewhere in the meantime"),
        (claim(), ends, "claim ns/c got deleted in the meantime"),
        (claim(), lambda server: server.change("c", {}) or server.claims.clear(), None),
    ],
)
def test_a_claim_that_became_another_meanwhile_fails_the_bind_and_gives_its_devices_back(made, happens, text):
    world, server = scene(made)
    pod = claiming("c")
    exchange = world.reserve(pod)
    server.before[1] = lambda: happens(server) or (ApiResponse(409, b"{}") if text is None else False)
    message, _ = perform(exchange, server)
    assert message == (text or "get updated claim ns/c after conflict: not there")
    world.unreserve(pod)
    world.claims.delete("ns/c")
    world.add(claim("d", exactly("r", 2)))
    assert world.outcome(claiming("d")) == "n2"


@pytest.mark.parametrize("kind", [DeviceClass, ResourceSlice, DeviceTaintRule])
@pytest.mark.parametrize("number", [1, 2])
def test_what_devices_were_found_by_may_go_before_they_are_written(kind, number):
    world, server = scene()
    world.add(make_rule(device="gpu-7"))
    exchange = world.reserve(claiming("c"))
    there = world.cache.listers.of(kind)
    server.before[number] = lambda: [there.delete(each) for each in list(there.objects)] and False
    assert perform(exchange, server) == ("done", [])
    assert [each.device for each in server.stored().status.allocation.devices.results] == ["gpu-0"]
    assert not there.objects


def test_a_claim_that_lost_its_devices_meanwhile_cannot_be_reserved():
    world, server = scene(claim("c", devices=["gpu-0"], node="n2", users=["q"]))
    exchange = world.reserve(claiming("c"))
    server.change("c", {"status": {"allocation": None}})
    assert perform(exchange, server)[0] == "claim ns/c got deallocated elsewhere in the meantime"


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "add finalizer to claim ns/c: no"), (2, "add allocation and reservation to claim ns/c: no")],
)
def test_a_write_that_is_refused_fails_the_bind_with_what_was_being_done(number, text):
    world, server = scene()
    server.before[number] = lambda: REFUSED
    assert perform(world.reserve(claiming("c")), server) == (text, [])


def spaced(*answers):
    """A claim that takes no patch, and what a read of it as it is stored, and its replacement, are answered."""
    spec = make_claim(exactly("r"), config=[{"opaque": {"driver": DRIVER, "parameters": {"a": 1}}}]).spec
    world, server = scene(replace(claim(), spec=spec))
    for number, answer in enumerate((ApiResponse(422, b'{"message": "immutable"}'), *answers), start=1):
        server.before[number] = lambda answer=answer: answer
    return world, server


def test_a_claim_that_takes_no_patch_is_replaced_as_it_is_stored_and_read_again():
    stored = b"k8s\x00" + b"\x0a\x02v1" + b"\x12\x03abc"
    world, server = spaced(ApiResponse(200, stored), ApiResponse(409, b"{}"))
    assert perform(world.reserve(claiming("c")), server) == ("done", [])
    read, written, again = server.calls[1:4]
    assert (read.method, read.accept) == ("GET", PROTOBUF)
    assert (written.method, written.content_type, written.versioned) == ("PUT", PROTOBUF, True)
    assert written.body == with_finalizer(stored, FINALIZER)
    assert (again.method, again.accept) == ("GET", None)


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ([ApiResponse(403, b'{"message": "no"}')], "no"),
        ([ApiResponse(200, b"{}")], "the answer is not in protobuf"),
        ([ApiResponse(200, b"k8s\x00\x12")], "the answer is cut off"),
        ([ApiResponse(200, b"k8s\x00\x12\x00"), ApiResponse(403, b'{"message": "no"}')], "no"),
    ],
)
def test_a_claim_that_cannot_be_replaced_fails_the_bind(answers, problem):
    world, server = spaced(*answers)
    assert perform(world.reserve(claiming("c")), server)[0] == f"add finalizer to claim ns/c: {problem}"


def test_a_write_that_arrived_and_whose_answer_was_lost_is_known_again():
    world, server = scene(claim(finalizers=[FINALIZER]))
    exchange, sent = world.reserve(claiming("c")), []

    def lost():
        """The first answer is lost, and the same patch is sent again."""
        body = server.calls[-1].body
        server.change("c", body)
        sent.append(body)
        return ApiResponse(409, b"{}")

    server.before[1] = lost
    assert perform(exchange, server) == ("done", [])
    assert len(server.stored().status.reserved_for) == 1
    assert [call.method for call in server.calls] == ["PATCH", "GET"]


def test_what_is_taken_is_taken_from_reserve_on_whatever_the_watch_shows():
    world, server = scene(claim(), claim("d", exactly("r", 2)))
    server.is_shown_at_once = False
    exchange, other, seen = world.reserve(claiming("c")), claiming("d", name="q"), []
    seen.append(world.outcome(other))

    def watch():
        seen.append(world.outcome(other))
        world.claims.set(claim(version="2", finalizers=[FINALIZER]))
        seen.append(world.outcome(other))
        server.show()

    assert perform(exchange, server, during=watch) == ("done", [])
    seen.append(world.outcome(other))
    assert len(seen) == 4
    assert all("2 cannot allocate all claims" in each for each in seen)
    world.claims.delete("ns/c")
    assert world.outcome(other) == "n2"


def test_a_claim_that_another_pod_is_about_to_allocate_is_waited_for():
    world, _ = scene(claim())
    world.reserve(claiming("c"))
    text = "resource claim ns/c is in the process of being allocated"
    assert refused(world, claiming("c", name="q")).message.startswith(f"0/2 nodes are available: {text}. ")


@pytest.mark.parametrize("group", [{"group": "g"}, {"labels": {POD_GROUP_LABEL: "g"}}], ids=["native", "crd"])
def test_pods_of_one_group_share_a_claim_that_is_not_written_yet(group):
    world, server = scene(claim())
    first, second = (world.reserve(claiming("c", name=name, **group)) for name in ("p", "q"))
    assert perform(second, server) == perform(first, server) == ("done", [])
    assert [each.uid for each in server.stored().status.reserved_for] == ["q", "p"]
    assert len(server.stored().status.allocation.devices.results) == 1


@pytest.mark.parametrize("order", ["cd", "dc"])
def test_a_pod_has_a_claim_of_its_own_beside_one_that_its_group_shares(order):
    world, server = scene(claim("c"), claim("d"))
    first = world.reserve(claiming("c", name="p", group="g"))
    second = world.reserve(claiming(*order, name="q", group="g"))
    assert [perform(each, server) for each in (first, second)] == [("done", [])] * 2
    got = {name: server.stored(name).status for name in order}
    assert [each.device for name in "cd" for each in got[name].allocation.devices.results] == ["gpu-0", "gpu-1"]
    assert [[each.uid for each in got[name].reserved_for] for name in "cd"] == [["p", "q"], ["q"]]


def test_a_claim_that_a_group_shares_is_free_once_none_of_its_pods_waits():
    world, _ = scene(claim(), claim("d", exactly("r", 2)))
    pods = [claiming("c", name=name, group="g") for name in ("p", "q")]
    for pod in pods:
        world.reserve(pod)
    world.unreserve(pods[0])
    assert "cannot allocate" in world.outcome(claiming("d"))
    world.unreserve(pods[1])
    assert world.outcome(claiming("d")) == "n2"


def test_a_pod_that_is_given_up_while_a_write_is_on_its_way_keeps_its_devices_until_the_answer():
    world, _ = scene(claim(), claim("d", exactly("r", 2)))
    pod = claiming("c")
    conversation = world.reserve(pod).begin()
    next(conversation)
    world.unreserve(pod)
    assert "cannot allocate" in world.outcome(claiming("d"))
    conversation.close()
    assert world.outcome(claiming("d")) == "n2"


def test_a_claim_that_only_this_pod_may_use_is_deallocated_where_it_keeps_the_pod_from_every_node():
    world, server = scene(claim("c", devices=["gpu-0"], node="n3", users=["p"]))
    assert refused(world, claiming("c")).message == (
        "0/2 nodes are available: 2 resourceclaim not available on the node. "
        f"deallocation of ResourceClaim completed, {NOT_HELPFUL}"
    )
    (exchange,) = world.later
    assert perform(exchange, server) == ("done", [])
    assert server.stored().status.allocation is None
    assert world.outcome(claiming("c")) == "n2"


@pytest.mark.parametrize("users", [["q"], ["p", "q"]])
def test_one_that_others_use_is_left_alone(users):
    world, _ = scene(claim("c", devices=["gpu-0"], node="n3", users=users))
    assert "deallocation" not in refused(world, claiming("c")).message
    assert world.later == []


def test_a_claim_that_was_changed_since_is_not_deallocated():
    world, server = scene(claim("c", devices=["gpu-0"], node="n3"))
    refused(world, claiming("c"))
    server.change("c", {"status": {"reservedFor": [{"resource": "pods", "name": "q", "uid": "q"}]}})
    (exchange,) = world.later
    assert perform(exchange, server)[0] == "deallocate claim ns/c: changed"
    assert server.stored().status.allocation is not None


@pytest.mark.parametrize(
    ("answer", "is_freed"),
    [
        (ApiResponse(200, b'{"metadata": {"uid": "p"}, "spec": {}}'), True),
        (ApiResponse(404, b"{}"), True),
        (ApiResponse(200, b'{"metadata": {"uid": "another"}, "spec": {"nodeName": "n2"}}'), True),
        (ApiResponse(200, b'{"metadata": {"uid": "p"}, "spec": {"nodeName": "n2"}}'), False),
        (ApiResponse(500, b"{}"), False),
        (None, False),
    ],
)
def test_a_pod_that_was_not_bound_uses_its_claim_no_longer_unless_it_has_a_node_after_all(answer, is_freed):
    world, server = scene()
    pod = claiming("c")
    perform(world.reserve(pod), server)
    world.unreserve(pod)
    (exchange,) = world.later
    server.before[len(server.calls) + 1] = lambda: answer
    assert perform(exchange, server) == ("done", [])
    assert (server.stored().status.reserved_for == []) is is_freed
    assert server.stored().status.allocation is not None, "the next attempt finds it"


def test_what_is_kept_of_claims_goes_with_them():
    world, server = scene(*(claim(f"c{n}") for n in range(40)), count=40)
    for n in range(40):
        pod = claiming(f"c{n}", name=f"p{n}")
        perform(world.reserve(pod), server)
        if n % 2:
            world.unreserve(pod)
    cache = world.cache.listers.shared(ClaimCache)
    assert cache.state.size > 40
    for n in range(40):
        world.claims.delete(f"ns/c{n}")
    cache.follow()
    assert (cache.state.size, cache.pending) == (0, {})
    assert cache.get("ns/c0") is None


def test_where_nothing_is_written_a_claim_that_is_gone_meanwhile_has_no_devices():
    world, _ = scene(claim(), claim("d", exactly("r", 2)))
    exchange = world.reserve(claiming("c"))
    world.claims.delete("ns/c")
    exchange.assume()
    assert world.outcome(claiming("d")) == "n2"
