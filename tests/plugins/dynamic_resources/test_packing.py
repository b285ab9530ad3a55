"""Which node a pod with claims gets where devices are packed, and which where they are not."""

from dataclasses import replace

import pytest
from tests.builders import make_node
from tests.devices.device_builders import alternative, device, exactly, make_class, make_gpus, make_slice
from tests.plugins.dynamic_resources.device_scene import claim, claiming

from bayplan.api.claim_objects import ResourceClaim
from bayplan.config.load import default_configuration
from bayplan.config.types import DeviceChoice, DynamicResourcesArgs, UtilizationShapePoint
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.simulator import Simulator

FULL = (UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10))
EMPTY = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
MEMORY = {"capacity": {"memory": {"value": "40Gi"}}}


def place(args, *objects, wanted=None, nodes=("n1", "n2", "n3")):
    """The node and the devices that a pod with a claim gets."""
    configuration = default_configuration()
    (profile,) = configuration.profiles
    profile = replace(profile, plugin_config={**profile.plugin_config, "DynamicResources": args})
    simulator = Simulator(replace(configuration, profiles=(profile,)))
    asked = claim("c", *([wanted] if wanted else []))
    pod = claiming("c")
    simulator.add(
        ClusterObjects(nodes=[make_node(name) for name in nodes], pods=[pod], looked_up=[make_class(), asked, *objects])
    )
    simulator.step()
    status = simulator.cache.listers.of(ResourceClaim).get("ns/c").status
    return simulator.cache.node_of(pod.uid), [each.device for each in status.allocation.devices.results]


GPUS = (
    make_gpus("n1", 4),
    make_gpus("n2", 4),
    make_gpus("n3", 2),
    claim("one", devices=["gpu-0"], node="n2"),
    claim("other", devices=["gpu-0"], node="n1"),
    claim("two", devices=["gpu-1"], node="n1"),
)
"""Half of n1 is taken, a quarter of n2, and nothing of n3, which is half as large."""


@pytest.mark.parametrize(("shape", "node"), [(FULL, "n1"), (EMPTY, "n2")])
def test_nodes_score_by_the_share_of_their_devices_that_is_taken_with_those_of_the_pod(shape, node):
    assert place(DynamicResourcesArgs(shape=shape), *GPUS)[0] == node


def test_without_a_shape_devices_do_not_score():
    nodes = {place(DynamicResourcesArgs(), *GPUS, nodes=order)[0] for order in (("n1", "n2"), ("n2", "n1"))}
    assert nodes == {"n1", "n2"}


def test_an_earlier_alternative_goes_before_a_fuller_node():
    slices = [
        make_slice("a", [device("gpu-0", attributes={"fast": 1}), device("gpu-1")], node="n1"),
        make_slice("b", [device("gpu-0", attributes={"fast": 0}), device("gpu-1")], node="n2"),
    ]
    fast = 'device.attributes["gpu.example.com"].?fast.orValue(0) == 1'
    wanted = {"name": "r", "firstAvailable": [alternative("fast", 1, fast), alternative("any", 1)]}
    taken = claim("one", devices=["gpu-1"], node="n2")
    args = DynamicResourcesArgs(shape=FULL)
    assert place(args, *slices, taken, wanted=wanted, nodes=("n1", "n2")) == ("n1", ["gpu-0"])


@pytest.mark.parametrize(
    ("choice", "given"), [(DeviceChoice.FIRST_FIT, "large"), (DeviceChoice.LEAST_LEFT_OVER, "small")]
)
def test_the_devices_that_are_written_are_those_that_were_chosen(choice, given):
    large = {"capacity": {"memory": {"value": "80Gi"}}}
    slices = make_slice("s", [device("large", **large), device("small", **MEMORY)])
    assert place(DynamicResourcesArgs(device_choice=choice), slices, wanted=exactly("r")) == ("n1", [given])
