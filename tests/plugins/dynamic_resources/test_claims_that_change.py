"""Claims that are others at the bind than they were when their devices were found."""

import sys
import tracemalloc
from contextlib import suppress

import pytest
from tests.devices.device_builders import exactly
from tests.plugins.dynamic_resources.device_scene import TIME, claim, claiming, late_write, perform, scene

from bayplan.api.response import ApiResponse
from bayplan.cache.listers import Listers
from bayplan.framework.status import EffectError, Notice
from bayplan.plugins.dynamic_resources.claim_cache import ClaimCache
from bayplan.plugins.dynamic_resources.claim_writes import FINALIZER


@pytest.mark.parametrize("users", [(), ("p",)])
def test_a_claim_that_was_found_with_devices_is_not_bound_with_other_ones(users):
    world, server = scene(claim("c", devices=["gpu-0"], node="n2", users=users))
    exchange = world.reserve(claiming("c"))
    server.change("c", {"status": {"allocation": None}})
    late_write(server, "gpu-1")
    assert perform(exchange, server)[0] == "claim ns/c got allocated elsewhere in the meantime"


@pytest.mark.parametrize("number", [1, 2])
def test_a_claim_that_was_made_anew_under_its_name_is_not_given_what_was_found_for_the_one_before(number):
    world, server = scene()
    exchange = world.reserve(claiming("c"))

    def becomes_another():
        server.change("c", {})
        server.claims["c"]["metadata"]["uid"] = "another"

    server.before[number] = lambda: becomes_another() or False
    assert perform(exchange, server)[0] == "claim ns/c got deleted in the meantime"
    assert server.stored().status.allocation is None


def test_devices_that_a_late_write_gave_the_claim_are_taken_at_once():
    world, server = scene(claim("c"), claim("d"))
    exchange = world.reserve(claiming("c"))
    late_write(server, "gpu-1")
    assert perform(world.reserve(claiming("d", name="q")), server) == ("done", [])
    assert [each.device for each in server.stored("d").status.allocation.devices.results] == ["gpu-0"]
    assert perform(exchange, server)[0] == "claim ns/c got allocated elsewhere in the meantime"


def test_a_try_that_ends_leaves_the_devices_to_the_next_try_of_the_pod():
    world, server = scene(claim("c"), claim("d", exactly("r", 2)))
    pod = claiming("c", group="g")
    first = world.reserve(pod).begin()
    next(first)
    world.unreserve(pod)
    second = world.reserve(pod)
    first.close()
    assert "cannot allocate" in world.outcome(claiming("d", name="q"))
    assert perform(second, server) == ("done", [])


def test_a_bind_waits_until_the_right_to_its_claim_is_taken_back_and_has_it_again():
    world, server = scene(claim(finalizers=[FINALIZER]))
    pod = claiming("c")
    perform(world.reserve(pod), server)
    world.unreserve(pod)
    giving_back, exchange = world.later[0].begin(), world.reserve(pod)
    server.answer(next(giving_back))
    request = giving_back.send(ApiResponse(404, b"{}"))

    def is_taken_back():
        with pytest.raises(StopIteration):
            giving_back.send(server.answer(request))

    server.is_shown_at_once = False
    assert perform(exchange, server, during=lambda: server.show() if not giving_back.gi_frame else is_taken_back()) == (
        "done",
        [],
    )
    assert [each.uid for each in server.stored().status.reserved_for] == ["p"]


def taken_back_without_an_answer():
    """The right of p to the claim that it shares with q is taken back; nobody says whether it will be."""
    world, server = scene(claim(finalizers=[FINALIZER]))
    pod = claiming("c")
    perform(world.reserve(pod), server)
    world.unreserve(pod)
    giving_back = world.later.pop().begin()
    next(giving_back)
    giving_back.send(ApiResponse(404, b"{}"))
    with suppress(EffectError):
        giving_back.send(None)
    return world, server, pod, giving_back


def test_what_may_yet_take_a_pods_right_to_its_claim_counts_as_under_way_for_a_minute():
    world, server, pod, _ = taken_back_without_an_answer()
    assert perform(world.reserve(pod), server)[0] == "claims are being given back: context deadline exceeded"
    (exchange,) = world.later
    waiting = exchange.begin()
    assert next(waiting) == 60
    with pytest.raises(StopIteration):
        next(waiting)
    assert perform(world.reserve(pod), server) == ("done", [])


def test_it_holds_up_nobody_else_who_uses_the_claim():
    world, server, _, _giving_back = taken_back_without_an_answer()
    assert perform(world.reserve(claiming("c", name="q")), server) == ("done", [])


def test_what_may_yet_take_the_devices_of_a_claim_counts_until_the_claim_is_another():
    world, server = scene(claim(devices=["gpu-0"], node="n2", time=TIME, version="90"))
    world.add(claim("theirs", devices=["gpu-0"], node="n2", version="80", users=["o"]))
    conversation = world.reserve(claiming("c")).begin()
    requests = [server.answer(next(conversation))]
    step = conversation.send(requests[0])
    assert isinstance(step, Notice)
    step = conversation.send(None)
    assert step.body["status"]["allocation"] is None
    with suppress(EffectError):
        conversation.send(None)
    conversation.close()  # Nobody wants the pod there any more.
    other = world.reserve(claiming("c", name="q"))
    assert perform(other, server)[0] == "claims are being given back: context deadline exceeded"
    world.claims.delete("ns/theirs")
    server.change("c", {})
    assert perform(other, server) == ("done", [])


def test_nothing_is_kept_of_a_pod_that_is_bound():
    made = claim("c")
    world, server = scene(made, claim("d"))
    before = sys.getrefcount(made)
    for name in "cd":  # The cycle keeps what it decided last.
        assert perform(world.reserve(claiming(name, name=name)), server) == ("done", [])
    assert sys.getrefcount(made) <= before


def test_remembered_binds_take_no_more_than_four_megabytes_and_the_oldest_go_first():
    cache = ClaimCache(Listers())
    tracemalloc.start()
    try:
        for number in range(50_000):
            cache.begin_bind(f"{number:036}")
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 4_000_000
    assert next(iter(cache.binding)) == f"{30_000:036}"
