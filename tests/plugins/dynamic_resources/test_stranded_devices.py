"""What is left of devices that are taken in part."""

from io import StringIO

import pytest
from msgspec import UNSET
from tests.builders import make_node
from tests.devices.device_builders import DRIVER, device, make_slice
from tests.plugins.dynamic_resources.device_scene import DeviceWorld, claim

from bayplan.api.device_objects import ResourceSlice
from bayplan.config.load import default_configuration
from bayplan.plugins.dynamic_resources.claim_cache import StrandedDevices
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.simulator import Simulator
from bayplan.simulate.tables import Printer, print_summary


def stranded(world):
    return StrandedDevices(world.cache.listers)


def cut(name, *eighths):
    """A partition that takes parts of a GPU whose counters are eight."""
    counters = {f"slice-{number}": {"value": "1"} for number in eighths}
    return device(name, consumesCounters=[{"counterSet": "gpu", "counters": counters}])


def gpu_in_parts():
    """A GPU with eight places, as a whole, and cut into a half and a quarter."""
    counters = {f"slice-{number}": {"value": "1"} for number in range(8)}
    sets = [{"name": "gpu", "counters": counters}]
    devices = [cut("whole", *range(8)), cut("half", *range(4)), cut("quarter", 4, 5)]
    return [
        make_slice("parts", devices, node="n1", count=2),
        make_slice("counters", [], node="n1", count=2, sharedCounters=sets),
    ]


@pytest.mark.parametrize(
    ("taken", "left"), [([], 0), (["whole"], 0), (["half"], 0.5), (["quarter"], 0.75), (["half", "quarter"], 0.25)]
)
def test_of_a_device_that_is_cut_it_is_what_no_partition_takes(taken, left):
    world = DeviceWorld(*gpu_in_parts(), *(claim(name, devices=[name], node="n1") for name in taken))
    assert stranded(world).by_driver() == {DRIVER: left}


def test_devices_that_are_taken_whole_or_not_at_all_leave_nothing():
    world = DeviceWorld(claim("c", devices=["gpu-0"], node="n2"))
    assert stranded(world).by_driver() == {DRIVER: 0}


def test_where_there_are_no_slices_there_is_nothing_to_tell():
    world = DeviceWorld()
    world.cache.listers.of(ResourceSlice).delete("n2-gpus")
    assert stranded(world).by_driver() == {}


def test_it_follows_what_claims_take_and_give_back():
    world = DeviceWorld(*gpu_in_parts())
    found = stranded(world)
    assert found.by_driver() == {DRIVER: 0}
    world.add(claim("half", devices=["half"], node="n1"))
    assert found.by_driver() == {DRIVER: 0.5}
    world.claims.delete("ns/half")
    assert found.by_driver() == {DRIVER: 0}


@pytest.mark.parametrize("slices", [gpu_in_parts(), []], ids=["with", "without"])
def test_a_simulation_says_so_in_its_summary_where_there_are_devices(slices):
    simulator = Simulator(default_configuration())
    simulator.add(ClusterObjects(nodes=[make_node("n1")], looked_up=[claim("c", devices=["half"], node="n1"), *slices]))
    summary, out = simulator.report().summary, StringIO()
    print_summary(Printer(out), summary)
    assert summary.stranded_devices == (0.5 if slices else UNSET)
    assert ("Devices: 0.5 stranded" in out.getvalue()) == bool(slices)
