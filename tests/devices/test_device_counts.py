"""How many devices each request could have is counted as the search for them finds."""

import pytest
from tests.devices.device_builders import (
    DRIVER,
    alternative,
    asked_selectors,
    device,
    exactly,
    make_allocator,
    make_claim,
    make_class,
    make_nodes,
    make_slice,
    still,
)
from tests.devices.judge import allocator_of, decode
from tests.devices.random_cases import random_case

from bayplan.api.claim_objects import ResourceClaim
from bayplan.api.objects import Node
from bayplan.devices.allocator import Grant

LARGE = f'device.attributes["{DRIVER}"].memory > 40'
MIXED = [
    *(device(f"small-{index}", attributes={"memory": 40}) for index in range(3)),
    device("large", attributes={"memory": 80}),
    device("broken", attributes={"memory": 80}, taints=[{"key": "broken", "effect": "NoSchedule"}]),
]


def counts(*requests, devices=MIXED, nodes=("n1",), classes=None):
    allocator = make_allocator([make_slice("s", devices)], classes or [make_class()])
    return allocator.count([make_claim(*requests)], make_nodes(*nodes), still)


def test_devices_are_counted_as_offered_selected_and_free():
    ((count,),) = counts(exactly("r", 2, LARGE))
    assert (count.claim, count.request, count.device_class, count.asked) == ("ns/claim", "r", "gpu", 2)
    assert (count.offered, count.selected, count.free, count.refused_by) == (5, 2, 1, LARGE)


def test_the_selector_that_refuses_most_is_named_whosever_it_is():
    of_class = f'device.attributes["{DRIVER}"].memory > 90'
    ((count,),) = counts(exactly("r", 1, LARGE), classes=[make_class("gpu", of_class)])
    assert (count.selected, count.refused_by) == (0, of_class)
    ((count,),) = counts(exactly("r", 1))
    assert (count.selected, count.free, count.refused_by) == (5, 4, "")


def test_a_node_without_devices_offers_none():
    assert [[each.offered for each in node] for node in counts(exactly(), nodes=("n1", "n2"))] == [[5], [0]]


def test_of_alternatives_the_one_is_counted_that_lacks_fewest():
    request = {"name": "r", "firstAvailable": [alternative("a", 9), alternative("b", 2, LARGE)]}
    ((count,),) = counts(request)
    assert (count.request, count.asked, count.free) == ("r/b", 2, 1)


def test_selectors_are_asked_once_for_all_devices_that_are_alike(monkeypatch):
    asked = asked_selectors(monkeypatch)
    devices = [device(f"gpu-{index}", attributes={"memory": 40 + index % 3}) for index in range(300)]
    allocator = make_allocator([make_slice("s", devices)])
    ((count,),) = allocator.count([make_claim(exactly("r", 1, LARGE))], make_nodes("n1"), still)
    assert (count.offered, count.selected) == (300, 200)
    assert asked == [LARGE] * 3


def test_a_pool_with_too_many_devices_to_look_at_is_not_counted():
    def slices(count):
        devices = [device(f"gpu-{index}") for index in range(128)]
        names = (f"s{number}" for number in range(count))
        return [make_slice(name, devices, node=None, pool=name, allNodes=True) for name in names]

    def offered(count):
        (found,) = make_allocator(slices(count)).count([make_claim(exactly())], make_nodes("n1"), still)
        return [each.offered for each in found]

    assert offered(10) == [1280]
    assert offered(1000) == []


def test_what_ends_the_attempt_is_counted_for_nobody():
    assert counts(exactly("r", 1, f'device.attributes["{DRIVER}"].unknown > 1')) == [()]


@pytest.mark.parametrize("seed", range(200))
def test_no_node_grants_what_a_request_is_counted_short_of(seed):
    case = random_case(seed)
    allocator = allocator_of(case)
    claims = [decode(each, ResourceClaim) for each in case["claims"]]
    nodes = [decode(case["node"], Node)]
    (answer,) = allocator.allocate(claims, nodes, still)
    short = [each for each in allocator.count(claims, nodes, still)[0] if each.free < each.asked]
    assert not (short and isinstance(answer, Grant)), short
