"""Devices that leave least behind, and how full a node is of devices; off, the devices are upstream's."""

import lzma

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.devices.device_builders import (
    answered,
    consumes,
    counter_set,
    device,
    exactly,
    make_allocator,
    make_claim,
    make_gpus,
    make_nodes,
    make_slice,
    still,
)
from tests.devices.judge import DATA, bayplan_answers
from tests.reference import device_packing

from bayplan.devices.allocated_state import AllocatedState

MULTIPLE = {"allowMultipleAllocations": True}
PARTS = {"a": range(4), "b": range(2), "c": range(2, 4)}
"""Partitions of a device of four slices: all of it, and its halves."""


def memory(amount):
    return {"capacity": {"memory": {"value": f"{amount}Gi"}}}


def wants(amount):
    return {"capacity": {"requests": {"memory": f"{amount}Gi"}}}


def state(**taken):
    """A state in which claims have devices of n1's pool, whole or in GiB."""
    found = AllocatedState()
    for name, amount in taken.items():
        result = {"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": name.replace("_", "-")}
        if amount is not True:
            result |= {"shareID": name, "consumedCapacity": {"memory": f"{amount}Gi"}}
        claim = msgspec.to_builtins(make_claim(exactly()))
        claim["status"] = {"allocation": {"devices": {"results": [result]}}}
        found.observe(name, msgspec.convert(claim, type(make_claim(exactly()))).status.allocation)
    return found


def packed(slices, *claims, allocated=None, packs=True):
    (devices,) = answered(make_allocator(slices, allocated=allocated), claims, make_nodes("n1"), packs=packs)
    return devices


def utilization(slices, *claims, allocated):
    nodes = make_nodes("n1")
    (answer,) = make_allocator(slices, allocated=allocated).allocate(claims, nodes, still, packs=True)
    return answer.utilization(nodes[0], allocated)


def test_the_smallest_device_that_will_do_is_taken():
    slices = [make_slice("s", [device("large", **memory(80)), device("small", **memory(40))])]
    assert packed(slices, make_claim(exactly())) == [["n1/small"]]
    assert packed(slices, make_claim(exactly("r", 1, **wants(50)))) == [["n1/large"]]
    assert packed(slices, make_claim(exactly()), packs=False) == [["n1/large"]]


def test_a_device_is_shared_before_a_whole_one_is_taken_and_the_fullest_first():
    parts = [device("whole", **memory(40)), *(device(f"shared-{i}", **MULTIPLE, **memory(40)) for i in range(3))]
    claim = make_claim(exactly("r", 1, **wants(10)))
    assert packed([make_slice("s", parts)], claim) == [["n1/shared-0"]]
    assert packed([make_slice("s", parts)], claim, allocated=state(shared_1=5, shared_2=20)) == [["n1/shared-2"]]


def halves(number):
    places = [f"whole-{number}", f"half-{number}0", f"half-{number}1"]
    return [
        {**device(name), "consumesCounters": [{**consumes(amount)["consumesCounters"][0], "counterSet": f"g{number}"}]}
        for name, amount in zip(places, (40, 20, 20), strict=True)
    ]


def test_a_partition_is_taken_of_a_device_that_is_broken_already():
    sets = [{**counter_set(40), "name": f"g{number}"} for number in range(3)]
    slices = [
        make_slice("counters", pool="n1", count=2, sharedCounters=sets),
        make_slice("parts", [each for number in range(3) for each in halves(number)], count=2),
    ]
    one = make_claim(exactly())
    assert packed(slices, one, allocated=state(half_10=True)) == [["n1/half-11"]]
    assert packed(slices, make_claim(exactly("r", 2))) == [["n1/half-00", "n1/half-01"]]


def test_a_partition_is_placed_where_it_blocks_least():
    counters = {f"s{place}": {"value": "1"} for place in range(4)}
    places = {"ab": (0, 1), "cd": (2, 3), "a": (0,), "b": (1,), "d": (3,), "abcd": range(4)}
    parts = [
        device(
            name,
            consumesCounters=[{"counterSet": "gpu", "counters": {f"s{place}": {"value": "1"} for place in found}}],
            **memory(len(found)),
        )
        for name, found in places.items()
    ]
    del parts[1]
    slices = [
        make_slice("counters", pool="n1", count=2, sharedCounters=[{"name": "gpu", "counters": counters}]),
        make_slice("parts", parts, count=2),
    ]
    assert packed(slices, make_claim(exactly())) == [["n1/d"]]


def test_requests_for_all_devices_and_for_administrators_keep_their_order():
    slices = [make_slice("s", [device("large", **memory(80)), device("small", **memory(40))])]
    assert packed(slices, make_claim(exactly("r", "All"))) == [["n1/large", "n1/small"]]
    assert packed(slices, make_claim(exactly("r", 1, adminAccess=True))) == [["n1/large"]]


def test_a_device_on_which_a_selector_fails_is_tried_last():
    bad = device("a", attributes={"size": "large"}, **memory(1))
    good = device("b", attributes={"size": 2}, **memory(2))
    claim = make_claim(exactly("r", 1, 'device.attributes["gpu.example.com"].size > 1'))
    assert packed([make_slice("s", [bad, good])], claim) == [["n1/b"]]


RECORDED = [msgspec.json.decode(line) for line in lzma.decompress(DATA.read_bytes()).splitlines()]


def test_what_has_devices_has_some_when_packed_and_what_has_none_has_none():
    kinds = [(answer.keys(), bayplan_answers(case, packs=True).keys()) for case, answer in RECORDED[::4]]
    assert [pair for pair in kinds if pair[0] != pair[1] and "error" not in pair[0]] == []
    assert sum(bayplan_answers(case, packs=True) != answer for case, answer in RECORDED[::4]) > 20


@st.composite
def nodes(draw):
    """A node's devices, plain, shared and in parts, and what is taken of them."""
    sizes = st.sampled_from((10, 20, 40))
    devices, sets = [], {}
    for number in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(("plain", "shared", "cut", "cut")))
        if kind != "cut":
            each = {"memory": draw(sizes), "shared": kind == "shared", "consumes": {}}
            devices.append({"name": f"gpu-{number}", **each})
            continue
        sets[f"g{number}"] = {f"s{place}": 1 for place in range(4)}
        amount = draw(sizes)
        for name, places in (("w", range(4)), ("l", range(2)), ("r", range(2, 4)), *((str(i), [i]) for i in range(4))):
            each = {"memory": amount * len(places) // 4 or 1, "shared": False, "set": f"g{number}"}
            devices.append({"name": f"gpu-{number}{name}", "consumes": {f"s{i}": 1 for i in places}, **each})
    taken = {}
    for each in draw(st.permutations(devices)):
        if draw(st.integers(0, 3)) == 0:
            trial = {**taken, each["name"]: draw(st.integers(1, each["memory"])) if each["shared"] else True}
            left = device_packing.counters_left(devices, sets, trial)
            if all(amount >= 0 for of in left.values() for amount in of.values()):
                taken = trial
    return devices, sets, taken


def as_slices(devices, sets):
    made = []
    for each in devices:
        fields = memory(each["memory"]) | (MULTIPLE if each["shared"] else {})
        if each["consumes"]:
            counters = {name: {"value": str(amount)} for name, amount in each["consumes"].items()}
            fields["consumesCounters"] = [{"counterSet": each["set"], "counters": counters}]
        made.append(device(each["name"], **fields))
    shared = [{"name": name, "counters": {c: {"value": str(n)} for c, n in of.items()}} for name, of in sets.items()]
    return [make_slice("devices", made, count=2), make_slice("counters", count=2, sharedCounters=shared)]


@settings(max_examples=150)
@given(nodes(), st.integers(1, 40))
def test_the_device_and_the_utilization_are_those_of_the_slow_oracle(node, wanted):
    devices, sets, taken = node
    allocated = state(**{name.replace("-", "_"): amount for name, amount in taken.items()})
    slices, claim = as_slices(devices, sets), make_claim(exactly("r", 1, **wants(wanted)))
    answer = packed(slices, claim, allocated=allocated)
    name = device_packing.least_left_over(devices, sets, taken, wanted)
    if name is None:
        assert answer == "cannot allocate all claims"
        return
    assert answer == [[f"n1/{name}"]]
    is_shared = next(each["shared"] for each in devices if each["name"] == name)
    after = {**taken, name: taken.get(name, 0) + wanted if is_shared else True}
    expected = 100 * device_packing.utilization(devices, sets, after)
    assert expected - 1 <= utilization(slices, claim, allocated=allocated) <= expected


@pytest.mark.parametrize(("taken", "percent"), [({}, 12), ({"gpu_0": True}, 25), ({"gpu_3": True, "gpu_7": True}, 37)])
def test_a_node_is_as_full_as_its_devices_with_those_of_the_claims(taken, percent):
    found = state(**taken)
    assert utilization([make_gpus("n1")], make_claim(exactly()), allocated=found) == percent
    administered = make_claim(exactly("r", 2, adminAccess=True))
    assert utilization([make_gpus("n1")], administered, allocated=found) == 0
