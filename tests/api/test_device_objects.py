import msgspec
import pytest

from bayplan.api.claim_objects import ResourceClaim
from bayplan.api.device_objects import DeviceClass, ResourceSlice

SLICE = b"""{"metadata": {"name": "s", "resourceVersion": "1"}, "spec": {"driver": "gpu.example.com", "nodeName": "n",
  "pool": {"name": "n", "generation": 3, "resourceSliceCount": 1}, "devices": [{"name": "gpu-0",
  "attributes": {"model": {"string": "A100"}, "index": {"int": 0}, "ecc": {"bool": true},
    "driver": {"version": "1.2.3"}},
  "capacity": {"memory": {"value": "40Gi", "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi"}}}},
  "consumesCounters": [{"counterSet": "c", "counters": {"m": {"value": "1"}}}],
  "taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}]}]}}"""
CLAIM = b"""{"metadata": {"name": "c", "namespace": "ns", "uid": "u", "finalizers": ["x"]}, "spec": {"devices": {
  "requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}},
    {"name": "o", "firstAvailable": [{"name": "a", "deviceClassName": "big"}]}],
  "config": [{"opaque": {"driver": "gpu.example.com", "parameters": {"kind": "G", "n": [1, 2.5, null]}}}]}},
  "status": {"allocation": {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "x",
    "shareID": "s", "consumedCapacity": {"memory": "1Gi"}}]}},
    "reservedFor": [{"resource": "pods", "name": "p", "uid": "v"}]}}"""


def test_what_a_driver_says_of_its_devices_is_read():
    (device,) = msgspec.json.decode(SLICE, type=ResourceSlice).spec.devices
    assert device.attributes["model"].string == "A100"
    assert (device.attributes["index"].integer, device.attributes["ecc"].boolean) == (0, True)
    assert device.attributes["driver"].version == "1.2.3"
    assert device.capacity["memory"].request_policy.valid_range.min == "1Gi"
    assert device.consumes_counters[0].counters["m"].value == "1"
    assert device.taints[0].effect == "NoSchedule"


def test_what_a_claim_asks_for_and_got_is_read():
    claim = msgspec.json.decode(CLAIM, type=ResourceClaim)
    exactly, other = claim.spec.devices.requests
    assert (exactly.exactly.device_class_name, exactly.exactly.count) == ("gpu", 2)
    assert (other.exactly, other.first_available[0].name, other.first_available[0].device_class_name) == (
        None,
        "a",
        "big",
    )
    (result,) = claim.status.allocation.devices.results
    assert (result.share_id, result.consumed_capacity) == ("s", {"memory": "1Gi"})
    assert (claim.status.reserved_for[0].uid, claim.metadata.finalizers) == ("v", ["x"])


@pytest.mark.parametrize(("text", "kind"), [(CLAIM, ResourceClaim), (SLICE, ResourceSlice)])
def test_what_is_read_is_written_as_it_came(text, kind):
    assert msgspec.json.decode(msgspec.json.encode(msgspec.json.decode(text, type=kind))) == msgspec.json.decode(text)


def test_an_object_with_a_value_of_another_kind_is_refused_with_its_field():
    with pytest.raises(msgspec.ValidationError, match=r"Expected `int`, got `str` - at `\$\.spec\.pool\.generation`"):
        msgspec.json.decode(SLICE.replace(b'"generation": 3', b'"generation": "3"'), type=ResourceSlice)
    with pytest.raises(msgspec.ValidationError, match=r"\$\.spec\.selectors"):
        msgspec.json.decode(b'{"spec": {"selectors": 1}}', type=DeviceClass)
