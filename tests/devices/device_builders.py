"""Slices, classes and claims for tests of devices."""

import msgspec

from bayplan.api.claim_objects import ResourceClaim
from bayplan.api.device_objects import DeviceClass, DeviceTaintRule, ResourceSlice
from bayplan.api.objects import Node
from bayplan.cel.selector import Selector
from bayplan.devices.allocated_state import AllocatedState
from bayplan.devices.allocator import Allocator

DRIVER = "gpu.example.com"


def device(name, **fields):
    """A device in JSON's form; attributes are given as plain values."""
    kinds = {str: "string", bool: "bool", int: "int"}
    if "attributes" in fields:
        fields["attributes"] = {key: {kinds[type(value)]: value} for key, value in fields["attributes"].items()}
    return {"name": name, **fields}


def make_slice(name, devices=(), *, node="n1", pool=None, generation=1, count=1, driver=DRIVER, **spec):
    """A slice of the pool of a node; `node=None` leaves the node to `spec`."""
    where = {"nodeName": node} if node else {}
    pool = {"name": pool or node or "pool", "generation": generation, "resourceSliceCount": count}
    body = {"driver": driver, "pool": pool, "devices": list(devices), **where, **spec}
    return msgspec.convert({"metadata": {"name": name}, "spec": body}, ResourceSlice)


def make_gpus(node, count=8, **fields):
    """A slice of equal devices gpu-0, gpu-1 and so on."""
    return make_slice(f"{node}-gpus", [device(f"gpu-{index}", **fields) for index in range(count)], node=node)


def counter_set(amount):
    """The counter set of a GPU with so many GiB."""
    return {"name": "gpu", "counters": {"memory": {"value": f"{amount}Gi"}}}


def consumes(amount):
    """What a device takes of `counter_set`, in GiB."""
    return {"consumesCounters": [{"counterSet": "gpu", "counters": {"memory": {"value": f"{amount}Gi"}}}]}


def make_class(name="gpu", *expressions, config=()):
    """A class by CEL expressions."""
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    body = {"metadata": {"name": name}, "spec": {"selectors": selectors, "config": list(config)}}
    return msgspec.convert(body, DeviceClass)


GPU_ONLY = (make_class(),)


def exactly(name="r", count=1, *expressions, of="gpu", **fields):
    """A request for exactly that many devices."""
    return {"name": name, "exactly": _wanted(count, expressions, of, fields)}


def alternative(name, count=1, *expressions, of="gpu", **fields):
    """An alternative of a request."""
    return {"name": name, **_wanted(count, expressions, of, fields)}


def _wanted(count, expressions, of, fields):
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    mode = {"allocationMode": "All"} if count == "All" else {"allocationMode": "ExactCount", "count": count}
    return {"deviceClassName": of, "selectors": selectors, **mode, **fields}


def make_claim(*requests, name="claim", **spec):
    """A claim with these requests."""
    body = {"devices": {"requests": list(requests), **spec}}
    return msgspec.convert({"metadata": {"name": name, "namespace": "ns", "uid": name}, "spec": body}, ResourceClaim)


def make_nodes(*names, **labels):
    """Nodes that have the same labels."""
    return [msgspec.convert({"metadata": {"name": name, "labels": labels}}, Node) for name in names]


def make_rule(effect="NoSchedule", **selector):
    """A DeviceTaintRule for the devices that the selector names."""
    spec = {"deviceSelector": selector, "taint": {"key": "broken", "effect": effect}}
    return msgspec.convert({"metadata": {"name": "rule"}, "spec": spec}, DeviceTaintRule)


def make_allocator(slices, classes=GPU_ONLY, *, rules=(), allocated=None, previous=None):
    """An allocator of these classes."""
    by_name = {each.metadata.name: each for each in classes}
    return Allocator(slices, by_name, rules, allocated or AllocatedState(), previous=previous)


def asked_selectors(monkeypatch):
    """The expressions that are asked about a device from now on, one for each time."""
    asked, matches = [], Selector.matches
    monkeypatch.setattr(Selector, "matches", lambda self, one: asked.append(self.expression) or matches(self, one))
    return asked


def still():
    """A clock that stands still: nothing is ever late."""
    return 0.0


def devices_of(answer, claims, node):
    """Pool and device of each result on a node, by claim; of a refusal its text, with that it is an error."""
    if not hasattr(answer, "allocations"):
        return f"error: {answer.text}" if answer.fails and not answer.timed_out else answer.text
    allocations = answer.allocations(claims, node)
    return [[f"{each.pool}/{each.device}" for each in found.devices.results] for found in allocations]


def answered(allocator, claims, nodes, now=still, **options):
    """What each of the nodes answers, as `devices_of` says it."""
    answers = allocator.allocate(claims, nodes, now, **options)
    return [devices_of(answer, claims, node) for answer, node in zip(answers, nodes, strict=True)]


def allocate(slices, *claims, nodes=("n1",), **options):
    """What each node answers, as `devices_of` says it."""
    return answered(make_allocator(slices, **options), claims, make_nodes(*nodes))
