import itertools
import re
import tracemalloc

import pytest
from msgspec.structs import replace
from tests.devices.device_builders import (
    DRIVER,
    allocate,
    alternative,
    answered,
    asked_selectors,
    consumes,
    counter_set,
    device,
    exactly,
    make_allocator,
    make_claim,
    make_class,
    make_gpus,
    make_nodes,
    make_slice,
)

from bayplan.api.meta_objects import ObjectMeta
from bayplan.cel.errors import CompileError
from bayplan.cel.selector import Selector
from bayplan.devices import device_selectors
from bayplan.devices.device_selectors import attributes_read, compiled

NONE = "cannot allocate all claims"


def ticking(step):
    """A clock that moves on at each look."""
    return map(float, itertools.count(0, step)).__next__


def test_asking_for_more_of_equal_devices_than_there_are_is_answered_without_trying_all_orders():
    assert allocate([make_gpus("n1", 20)], make_claim(exactly("r", 21))) == [NONE]
    spread = make_claim(*(exactly(f"r{i}", 1) for i in range(21)))
    assert allocate([make_gpus("n1", 20)], spread) == [NONE]


def test_devices_that_all_differ_are_answered_as_soon_as_their_number_is_too_small():
    unlike = [device(f"gpu-{i}", capacity={"memory": {"value": f"{i}Gi"}}) for i in range(40)]
    wants = {"capacity": {"requests": {"memory": "10Gi"}}}
    assert allocate([make_slice("s", unlike)], make_claim(exactly("r", 31, **wants))) == [NONE]
    assert allocate([make_slice("s", unlike)], make_claim(exactly("r", 30, **wants))) != [NONE]


def test_a_search_without_end_gives_the_node_up_after_so_many_looks():
    parts = [device(f"part-{i}", **consumes(10 + i)) for i in range(40)]
    slices = [make_slice("parts", parts, count=2)]
    slices.append(make_slice("counters", pool="n1", count=2, sharedCounters=[counter_set(100)]))
    refused = allocate(slices, make_claim(exactly("r", 9)))
    assert refused == ["timed out trying to allocate devices"]


def test_an_attempt_that_takes_too_long_refuses_the_nodes_that_it_did_not_reach():
    slices = [make_gpus(f"n{i}", i) for i in range(1, 9)]
    allocator = make_allocator(slices)
    nodes = make_nodes(*(f"n{i}" for i in range(1, 9)))
    answers = answered(allocator, [make_claim(exactly())], nodes, ticking(0.06))
    late = [answer == "timed out trying to allocate devices" for answer in answers]
    assert late == sorted(late)
    assert answers[0] == [["n1/gpu-0"]]
    assert late[-1]


def test_a_claim_of_many_alternatives_and_requests_needs_no_deep_stack():
    alternatives = [alternative(f"a{i}", 1) for i in range(8)]
    claims = [
        make_claim(*({"name": f"r{r}", "firstAvailable": alternatives} for r in range(32)), name=f"c{c}")
        for c in range(12)
    ]
    (found,) = allocate([make_gpus("n1", 400)], *claims)
    assert [len(each) for each in found] == [32] * 12


def test_more_devices_than_a_result_holds_unwind_to_an_alternative_that_fits():
    claim = make_claim(
        {"name": "first", "firstAvailable": [alternative("many", 32), alternative("few", 1)]}, exactly("r", 2)
    )
    assert allocate([make_gpus("n1", 40)], claim) == [[["n1/gpu-0", "n1/gpu-1", "n1/gpu-2"]]]


@pytest.mark.parametrize(
    ("counters", "consumed"),
    [
        ({"memory": {"value": "much"}}, {"memory": {"value": "1"}}),
        ({"memory": {"value": "1"}}, {"memory": {"value": "1 GiB"}}),
        ({"memory": {"value": "1"}}, {"cores": {"value": "1"}}),
    ],
)
def test_counters_that_lie_make_the_pool_invalid_and_no_other(counters, consumed):
    bad = device("part", consumesCounters=[{"counterSet": "c", "counters": consumed}])
    slices = [
        make_slice("counters", pool="n1", count=2, sharedCounters=[{"name": "c", "counters": counters}]),
        make_slice("parts", [bad], count=2),
    ]
    assert allocate(slices, make_claim(exactly())) == ["invalid resource pools were encountered"]
    assert allocate([*slices, make_slice("other", [device("x")], pool="other")], make_claim(exactly())) == [
        [["other/x"]]
    ]


def test_a_generation_that_goes_back_hides_the_older_devices():
    old = make_slice("old", [device("gpu-0")], generation=1)
    new = make_slice("new", [device("gpu-1")], generation=2)
    assert allocate([new, old], make_claim(exactly())) == [[["n1/gpu-1"]]]
    replaced_elsewhere = make_slice("new", [device("gpu-1")], node="n2", pool="n1", generation=2, count=1)
    assert allocate([make_slice("old", [device("gpu-0")], count=2), replaced_elsewhere], make_claim(exactly())) == [
        NONE
    ]


def test_a_capacity_that_is_no_quantity_names_the_device():
    slices = [make_slice("s", [device("gpu-0", capacity={"memory": {"value": "lots"}})])]
    (told,) = allocate(slices, make_claim(exactly()))
    assert re.fullmatch(r"error: .*checking capacity for device .*/n1/gpu-0: .*not a quantity: 'lots'", told)


@pytest.mark.parametrize("good", ["gpu-0", "gpu-1"])
def test_a_version_beyond_all_numbers_fails_its_own_device_and_none_that_is_like_it_otherwise(good):
    devices = [device(f"gpu-{i}", attributes={"model": "A"}) for i in range(2)]
    for each in devices:
        # The API server takes both.
        each["attributes"]["firmware"] = {"version": "1.0.0" if each["name"] == good else f"{2**64}.0.0"}
    slices, text = [make_slice("s", devices)], f'device.attributes["{DRIVER}"].model == "A"'
    found = allocate(slices, make_claim(exactly("r", 1, text)))
    told = f"error: claim ns/claim: selector #0 on device {DRIVER}/n1/gpu-0: CEL runtime error: attribute firmware: "
    assert found == [[["n1/gpu-0"]]] if good == "gpu-0" else found[0].startswith(told)
    (told,) = allocate(slices, make_claim(exactly("r", 2, text)))
    assert "value out of range" in told


def test_a_selector_that_does_not_compile_is_told_when_a_device_is_looked_at():
    claim = make_claim(exactly("r", 1, "nonsense"))
    assert allocate([], claim) == [NONE]
    (told,) = allocate([make_gpus("n1")], claim)
    assert told.startswith(
        "error: claim ns/claim: selector #0: CEL compile error: compilation failed: ERROR: <input>:1:1"
    )


def test_claims_that_all_ask_for_something_else_take_no_more_than_so_much_memory():
    shared = device("gpu-0", allowMultipleAllocations=True, capacity={"memory": {"value": "40Gi"}})
    allocator = make_allocator([make_slice("s", [shared])])
    nodes = make_nodes("n1")
    tracemalloc.start()
    for amount in range(12_000):
        wants = {"capacity": {"requests": {"memory": f"{amount + 1}Ki"}}}
        assert answered(allocator, [make_claim(exactly("r", **wants))], nodes) == [[["n1/gpu-0"]]]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 32 * 2**20


def test_selectors_that_take_long_are_asked_no_longer_than_an_attempt_may_take(monkeypatch):
    clock, asked = [0.0], []

    def slowly(selector, _device):
        asked.append(selector.expression)
        clock[0] += 0.09
        return False

    monkeypatch.setattr(Selector, "matches", slowly)
    unlike = [device(f"gpu-{i}", attributes={"number": i}) for i in range(100)]
    texts = [f'device.attributes["{DRIVER}"].number < 0 && {i} > 0' for i in range(3)]
    allocator = make_allocator([make_slice("s", unlike)], [make_class("gpu", *texts)])
    answers = answered(allocator, [make_claim(exactly("r", 1, *texts))], make_nodes("n1", "n2"), lambda: clock[0])
    assert answers[0] == "timed out trying to allocate devices"
    assert len(asked) == 3


def test_what_is_kept_of_long_expressions_has_a_bound():
    terms = " || ".join(['device.driver == ""'] * 440)
    tracemalloc.start()
    for number in range(60):
        assert compiled(f"{terms} || {number} == 0").paths == {("driver",)}
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 20 * 2**20


def test_an_expression_that_does_not_compile_is_compiled_once(monkeypatch):
    asked = []

    def refused(expression):
        asked.append(expression)
        raise CompileError("it is none")

    monkeypatch.setattr(device_selectors, "Selector", refused)
    for _ in range(3):
        with pytest.raises(CompileError, match="it is none"):
            compiled("compiled once: nothing")
        assert attributes_read("compiled once: nothing") == frozenset()
    assert asked == ["compiled once: nothing"]


def test_a_driver_whose_generations_go_back_offers_what_there_is_now():
    newer = make_slice("gpus", [device("gpu-0"), device("gpu-1")], generation=7)
    older = make_slice("gpus", [device("gpu-0")], generation=3)
    before = make_allocator([newer])
    claims, nodes = [make_claim(exactly("r", 2))], make_nodes("n1")
    assert answered(before, claims, nodes) == [[["n1/gpu-0", "n1/gpu-1"]]]
    after = make_allocator([older], previous=before)
    assert answered(after, claims, nodes) == [NONE]
    assert answered(after, [make_claim(exactly())], nodes) == [[["n1/gpu-0"]]]


def test_ten_thousand_full_slices_are_searched_no_further_than_needed(monkeypatch):
    one = make_slice("s", [device(f"gpu-{i}") for i in range(128)])

    def made(name, **where):
        pool = replace(one.spec.pool, name=name)
        return replace(one, metadata=ObjectMeta(name=name), spec=replace(one.spec, pool=pool, **where))

    slices = [made(f"p{i:05}", node_name=None, all_nodes=True) for i in range(5000)]
    slices += [made(f"t{i}", node_name=f"n{i}") for i in range(5000)]
    wanted = exactly("r", 32, f'device.driver == "{DRIVER}"')
    allocator, asked = make_allocator(slices), asked_selectors(monkeypatch)
    answers = answered(allocator, [make_claim(wanted)], make_nodes(*(f"n{i}" for i in range(50))))
    assert [len(devices) for (devices,) in answers] == [32] * 50
    assert len(asked) == 1
