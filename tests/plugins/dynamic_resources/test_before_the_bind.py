"""What a pod waits for once its claims are written: that its devices are its own, and that they are ready."""

import pytest
from msgspec.structs import replace
from tests.devices.device_builders import exactly, make_gpus
from tests.plugins.dynamic_resources.device_scene import TIME, ClaimServer, claim, claiming, perform, scene

from bayplan.api.claim_objects import AllocatedDeviceStatus
from bayplan.api.objects import Condition


def rival(server, version="1", time="2026-01-01T00:00:00Z", **fields):
    """A claim that another scheduler gave gpu-0 to."""
    server.world.add(claim("theirs", devices=["gpu-0"], node="n2", time=time, version=version, users=["q"], **fields))


def test_a_device_that_another_scheduler_gave_away_first_is_given_up_before_the_bind():
    world, server = scene()
    exchange = world.reserve(claiming("c"))
    server.before[2] = lambda: rival(server) or False
    message, said = perform(exchange, server)
    assert message == "a device of claim c was allocated to claim ns/theirs by another scheduler"
    assert said == [f"Warning DeviceTakenTwice: {message}"]
    assert (server.stored().status.allocation, server.stored().status.reserved_for) == (None, [])
    world.unreserve(claiming("c"))
    exchange = world.reserve(claiming("c"))
    assert perform(exchange, server) == ("done", [])
    assert server.stored().status.allocation.devices.results[0].device == "gpu-1"


def test_one_that_another_scheduler_gave_away_later_is_kept():
    world, server = scene()
    exchange = world.reserve(claiming("c"))
    server.before[2] = lambda: rival(server, version="999", time="2026-01-03T00:00:00Z") or False
    assert perform(exchange, server) == ("done", [])


@pytest.mark.parametrize("users", [(), ("p",)])
def test_a_device_is_given_up_too_that_a_scheduler_wrote_on_the_claim_which_did_not_live_to_look(users):
    """The last write of one that was killed came after those of its successor, who had given the device to another."""
    world, server = scene(claim(devices=["gpu-0"], node="n2", time="2026-01-02T00:00:00Z", version="90", users=users))
    rival(server, version="80", time="2026-01-02T00:00:01Z")
    exchange = world.reserve(claiming("c"))
    assert perform(exchange, server)[0] == "a device of claim c was allocated to claim ns/theirs by another scheduler"
    assert server.stored().status.allocation is None


def test_a_claim_that_another_pod_uses_keeps_a_device_that_was_given_away_twice():
    world, server = scene(claim(devices=["gpu-0"], node="n2", time="2026-01-02T00:00:00Z", version="90", users=["o"]))
    rival(server, version="80")
    assert perform(world.reserve(claiming("c")), server) == ("done", [])


def late_write(server, device):
    """What a scheduler that was killed sent for the same pod arrives."""
    written = ClaimServer(None, claim("c", devices=[device], node="n2", time=TIME, users=["p"])).claims["c"]
    server.change("c", {"status": written["status"]})


def test_a_claim_that_a_late_write_gave_the_pod_other_devices_is_not_bound_with_them():
    world, server = scene()
    pod = claiming("c")
    exchange = world.reserve(pod)
    late_write(server, "gpu-1")
    assert perform(exchange, server)[0] == "claim ns/c got allocated elsewhere in the meantime"
    world.unreserve(pod)
    assert perform(world.reserve(pod), server) == ("done", [])
    assert [each.device for each in server.stored().status.allocation.devices.results] == ["gpu-1"]


def test_a_claim_that_a_late_write_gave_the_devices_that_were_found_is_taken_as_ours():
    world, server = scene()
    exchange = world.reserve(claiming("c"))
    late_write(server, "gpu-0")
    assert perform(exchange, server) == ("done", [])
    assert server.calls == []
    world.claims.delete("ns/c")
    world.add(claim("d", exactly("r", 2)))
    assert world.outcome(claiming("d", name="q")) == "n2", "nothing counts as about to be written any more"


def test_a_watch_that_does_not_show_what_was_written_fails_the_bind():
    world, server = scene()
    server.is_shown_at_once = False
    assert perform(world.reserve(claiming("c")), server)[0] == "claims are not shown: context deadline exceeded"


def waits(world, server):
    """Have the device of the claim be one that has to be made ready; returns what the driver says of it then."""
    slices = make_gpus("n2", 1, bindingConditions=["Attached"], bindingFailureConditions=["Broken"])
    world.add(slices)

    def say(condition):
        (result,) = server.stored().status.allocation.devices.results
        said = Condition(type=condition, status="True", reason="R", message="m")
        status = AllocatedDeviceStatus(driver=result.driver, pool=result.pool, device=result.device, conditions=[said])
        shown = server.stored()
        version = replace(shown.metadata, resource_version="999")
        world.claims.set(replace(shown, metadata=version, status=replace(shown.status, devices=[status])))

    return say


def counted(world):
    """How often a device was waited for, by profile, driver and how it ended."""
    return dict(world.metrics.device_waits.values)


def test_a_bind_waits_for_devices_that_have_to_be_made_ready():
    world, server = scene()
    say = waits(world, server)
    message, said = perform(world.reserve(claiming("c")), server, during=lambda: say("Attached"))
    assert (message, said) == (
        "done",
        ["Normal BindingConditionsPending: waiting for binding conditions for device on node n2"],
    )
    assert counted(world) == {("bayplan", "gpu.example.com", "success"): 1}


def test_a_device_that_fails_to_be_ready_fails_the_bind_and_the_claim_is_deallocated_then():
    world, server = scene()
    say = waits(world, server)
    pod = claiming("c")
    message, _ = perform(world.reserve(pod), server, during=lambda: say("Broken"))
    assert message == 'device binding failed: claim=c, reason=R, message="m"'
    assert counted(world) == {("bayplan", "gpu.example.com", "failure"): 1}


def test_devices_that_take_too_long_fail_the_bind():
    world, server = scene()
    waits(world, server)

    def pass_time():
        world.now += 601

    message, _ = perform(world.reserve(claiming("c")), server, during=pass_time)
    assert message == "device binding timeout: claim=c"
    assert counted(world) == {("bayplan", "gpu.example.com", "timeout"): 1}
    assert world.metrics.device_wait_seconds.series("bayplan", "gpu.example.com", "timeout").total == 601


def test_a_wait_that_ends_otherwise_counts_as_an_error():
    world, server = scene()
    waits(world, server)
    exchange = world.reserve(claiming("c"))

    def goes():
        world.claims.delete("ns/c")

    assert perform(exchange, server, during=goes)[0] == 'could not find ResourceClaim "ns/c"'
    assert counted(world) == {("bayplan", "gpu.example.com", "error"): 1}
