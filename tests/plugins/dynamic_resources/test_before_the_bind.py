"""What a pod waits for once its claims are written: that its devices are its own, and that they are ready."""

import json

import msgspec
import pytest
from msgspec.structs import replace
from tests.devices.device_builders import consumes, counter_set, device, exactly, make_gpus, make_slice
from tests.plugins.dynamic_resources.device_scene import claim, claiming, late_write, perform, scene

from bayplan.api.claim_objects import AllocatedDeviceStatus, ResourceClaim
from bayplan.api.objects import Condition
from bayplan.api.response import ApiResponse
from bayplan.plugins.dynamic_resources.claim_writes import FINALIZER


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


@pytest.mark.parametrize(("status", "node", "is_kept"), [(200, "n2", True), (200, "", False), (404, "", False)])
def test_a_claim_that_another_pod_runs_with_keeps_a_device_that_was_given_away_twice(status, node, is_kept):
    world, server = scene(claim(devices=["gpu-0"], node="n2", time="2026-01-02T00:00:00Z", version="90", users=["o"]))
    rival(server, version="80")
    pod = {"metadata": {"uid": "o"}, "spec": {"nodeName": node}}
    server.before[2] = lambda: ApiResponse(status, json.dumps(pod).encode())
    message, _ = perform(world.reserve(claiming("c")), server)
    assert server.calls[1].path == "/api/v1/namespaces/ns/pods/o"
    assert (message == "done") is is_kept
    assert (server.stored().status.allocation is not None) is is_kept


def share(name, amount, **fields):
    """A claim that has so many GiB of gpu-0."""
    made = msgspec.to_builtins(claim(name, devices=["gpu-0"], node="n2", **fields))
    (result,) = made["status"]["allocation"]["devices"]["results"]
    result |= {"shareID": name, "consumedCapacity": {"memory": f"{amount}Gi"}}
    return msgspec.convert(made, ResourceClaim)


@pytest.mark.parametrize(
    ("theirs", "version", "is_kept"),
    [(30, "2", False), (20, "2", True), (30, "999", True)],
    ids=["too much before ours", "as much as there is", "too much after ours"],
)
def test_a_share_is_given_up_too_if_others_have_too_much_of_the_device(theirs, version, is_kept):
    world, server = scene(claim("c", exactly("r", capacity={"requests": {"memory": "10Gi"}})))
    shared = device("gpu-0", allowMultipleAllocations=True, capacity={"memory": {"value": "40Gi"}})
    world.add(make_slice("n2-gpus", [shared], node="n2"), share("neighbour", 10, version="1", users=["o"]))
    exchange = world.reserve(claiming("c"))
    written = share("theirs", theirs, version=version, time="2026-01-03T00:00:00Z", users=["q"])
    server.before[2] = lambda: world.add(written) or False
    message = perform(exchange, server)[0]
    text = "a device of claim c was allocated to claim ns/theirs by another scheduler"
    assert message == ("done" if is_kept else text)
    assert (server.stored().status.allocation is not None) is is_kept


@pytest.mark.parametrize(("theirs", "is_kept"), [("small", True), ("large", False)])
def test_a_partition_is_given_up_too_if_another_has_the_counters_that_it_consumes(theirs, is_kept):
    world, server = scene()
    partitions = [device(name, **consumes(amount)) for name, amount in (("ours", 20), ("small", 20), ("large", 30))]
    counters = make_slice("n2-counters", node="n2", count=2, sharedCounters=[counter_set(40)])
    world.add(make_slice("n2-gpus", partitions, node="n2", count=2), counters)
    exchange = world.reserve(claiming("c"))
    written = claim("theirs", devices=[theirs], node="n2", version="2", users=["q"])
    server.before[2] = lambda: world.add(written) or False
    assert (perform(exchange, server)[0] == "done") is is_kept


def test_a_claim_of_a_group_keeps_it_too_where_another_scheduler_came_between_its_pods():
    world, server = scene(claim(finalizers=[FINALIZER]))
    first, second = (world.reserve(claiming("c", name=name, group="g")) for name in ("p", "q"))
    assert perform(first, server) == ("done", [])
    rival(server, version=str(server.version + 1), time="2026-01-03T00:00:00Z")
    server.version += 1
    assert perform(second, server) == ("done", [])
    assert [each.uid for each in server.stored().status.reserved_for] == ["p", "q"]


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


def test_a_claim_is_not_taken_from_a_pod_that_another_profile_is_binding():
    world, server = scene(claim(devices=["gpu-0"], node="n2", time="2026-01-02T00:00:00Z", version="5"))
    assert perform(world.reserve(claiming("c", name="a")), server) == ("done", [])
    world.start()  # The plugins of another profile, or of another configuration.
    rival(server)
    assert perform(world.reserve(claiming("c", name="b")), server) == ("done", [])
    assert [each.uid for each in server.stored().status.reserved_for] == ["a", "b"]


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


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"reservedFor": [{"uid": "p", "$patch": "delete"}]}, "claim ns/c is not reserved for the pod any more"),
        ({"allocation": None}, "claim ns/c got allocated elsewhere in the meantime"),
    ],
    ids=["no longer its own", "elsewhere"],
)
def test_a_claim_that_is_another_once_its_devices_are_ready_fails_the_bind(change, text):
    world, server = scene()
    say = waits(world, server)

    def changes():
        allocation = server_form(server, "gpu-7")
        server.change("c", {"status": change})
        if "allocation" in change:
            server.change("c", {"status": {"allocation": allocation}})
        say("Attached")

    assert perform(world.reserve(claiming("c")), server, during=changes)[0] == text


def server_form(server, device):
    """The allocation of the claim, if it had another device."""
    allocation = msgspec.to_builtins(server.stored().status.allocation)
    allocation["devices"]["results"][0]["device"] = device
    return allocation


def test_a_wait_that_ends_otherwise_counts_as_an_error():
    world, server = scene()
    waits(world, server)
    exchange = world.reserve(claiming("c"))

    def goes():
        world.claims.delete("ns/c")

    assert perform(exchange, server, during=goes)[0] == 'could not find ResourceClaim "ns/c"'
    assert counted(world) == {("bayplan", "gpu.example.com", "error"): 1}
