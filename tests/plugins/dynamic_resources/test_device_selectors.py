"""Expressions about devices as drivers publish them."""

import pytest
from tests.devices.device_builders import DRIVER, device, exactly, make_class, make_slice
from tests.plugins.dynamic_resources.device_scene import DeviceWorld, claim, claiming

from bayplan.devices.device_selectors import attributes_read

MEMORY = {"memory": {"value": "40Gi"}}


def world(*expressions, **fields):
    """Two nodes of which n1 has one device with these fields, and a claim on such a one."""
    made = DeviceWorld(make_class("odd", *expressions), claim("c", exactly("r", of="odd")), count=0)
    made.add(make_slice("s", [device("d", **fields)], node="n1"))
    return made.outcome(claiming("c"))


@pytest.mark.parametrize(
    "expression",
    [
        f'device.driver == "{DRIVER}"',
        f'device.attributes["{DRIVER}"].model == "A100" && device.attributes["{DRIVER}"].index == 3',
        f'device.attributes["{DRIVER}"].ecc',
        'device.attributes["other.example.com"].rack == "r1"',
        f'device.attributes["{DRIVER}"].firmware.isGreaterThan(semver("1.2.3"))',
        f'device.capacity["{DRIVER}"].memory.compareTo(quantity("20Gi")) > 0',
        "!device.allowMultipleAllocations",
    ],
)
def test_a_device_is_what_its_driver_says(expression):
    attributes = {"model": "A100", "index": 3, "ecc": True, "other.example.com/rack": "r1"}
    made = DeviceWorld(make_class("odd", expression), claim("c", exactly("r", of="odd")), count=0)
    one = device("d", attributes=attributes, capacity=MEMORY)
    one["attributes"]["firmware"] = {"version": "1.10.0"}
    made.add(make_slice("s", [one], node="n1"))
    assert made.outcome(claiming("c")) == "n1"


def test_a_device_that_an_expression_is_false_of_is_left_out():
    found = world(f'device.attributes["{DRIVER}"].model == "H100"', attributes={"model": "A100"})
    assert "2 cannot allocate all claims" in found


def test_an_expression_without_a_value_ends_the_attempt_with_kube_schedulers_text():
    with pytest.raises(RuntimeError) as raised:
        world(f'device.attributes["{DRIVER}"].gone == "x"')
    assert str(raised.value) == (
        'running "DynamicResources" filter plugin: class odd: selector #0 on device gpu.example.com/n1/d: '
        "CEL runtime error: no such key: gone. consider using CEL optional chaining (.? followed by orValue()) or "
        "guarding the check with has() for optional fields"
    )


def test_a_version_that_is_none_leaves_a_device_without_any_value():
    made = DeviceWorld(make_class("odd", "true"), claim("c", exactly("r", of="odd")), count=0)
    one = device("d", attributes={"model": "A"})
    one["attributes"]["firmware"] = {"version": "one"}
    made.add(make_slice("s", [one], node="n1"))
    with pytest.raises(RuntimeError, match="attribute firmware: parse semantic version: "):
        made.outcome(claiming("c"))


def test_what_does_not_compile_ends_the_attempt_too():
    with pytest.raises(RuntimeError, match=r"class odd: selector #0: CEL compile error: "):
        world("device.nothing")


def test_what_an_expression_reads_is_told_by_full_names_unless_it_may_read_anything():
    named = f'device.attributes["{DRIVER}"].model == "A" && device.driver == "d"'
    assert attributes_read(named) == {f"{DRIVER}/model"}
    assert attributes_read("device.attributes.exists(d, true)") is None
