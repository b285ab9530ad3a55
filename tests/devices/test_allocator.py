import pytest
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
    make_rule,
    make_slice,
    still,
)

from bayplan.devices.allocated_state import AllocatedState

NONE = "cannot allocate all claims"


def taken(*devices, node="n1"):
    """A state in which one claim holds these devices."""
    state = AllocatedState()
    allocator = make_allocator([make_slice("s", [device(name) for name in devices], node=node)])
    claims, nodes = [make_claim(exactly("r", len(devices)))], make_nodes(node)
    (answer,) = allocator.allocate(claims, nodes, still)
    state.observe("other", answer.allocations(claims, nodes[0])[0])
    return state


def test_each_node_gives_its_own_first_devices():
    slices = [make_gpus("n1"), make_gpus("n2")]
    claims = make_claim(exactly("a", 2), exactly("b")), make_claim(exactly(), name="second")
    assert allocate(slices, *claims, nodes=("n1", "n2", "bare")) == [
        [["n1/gpu-0", "n1/gpu-1", "n1/gpu-2"], ["n1/gpu-3"]],
        [["n2/gpu-0", "n2/gpu-1", "n2/gpu-2"], ["n2/gpu-3"]],
        NONE,
    ]


def test_what_another_claim_holds_is_not_given_again():
    assert allocate([make_gpus("n1", 3)], make_claim(exactly("r", 2)), allocated=taken("gpu-0")) == [
        [["n1/gpu-1", "n1/gpu-2"]]
    ]
    assert allocate([make_gpus("n1", 3)], make_claim(exactly("r", 3)), allocated=taken("gpu-0")) == [NONE]


def test_alike_nodes_are_one_search_whatever_the_attributes_that_nobody_reads(monkeypatch):
    asked = asked_selectors(monkeypatch)
    slices = [make_gpus(f"n{i}", attributes={"model": "A", "uuid": f"GPU-{i}"}) for i in range(500)]
    expression = f'device.attributes["{DRIVER}"].model == "A"'
    allocator = make_allocator(slices, [make_class("gpu", expression)])
    nodes = make_nodes(*(f"n{i}" for i in range(500)))
    assert answered(allocator, [make_claim(exactly("r", 8))], nodes)[499] == [[f"n499/gpu-{i}" for i in range(8)]]
    assert asked == [expression]


def test_what_was_found_stands_for_claims_that_ask_for_the_same_until_something_is_taken_there(monkeypatch):
    asked = asked_selectors(monkeypatch)
    allocated = AllocatedState()
    expression = f'device.attributes["{DRIVER}"].model == "A"'
    slices = [make_gpus(name, 2, attributes={"model": "A"}) for name in ("n1", "n2")]
    allocator = make_allocator(slices, [make_class("gpu", expression)], allocated=allocated)

    nodes = make_nodes("n1", "n2")

    def ask(name):
        return answered(allocator, [make_claim(exactly(), name=name)], nodes)

    claims = [make_claim(exactly(), name="first")]
    first = allocator.allocate(claims, nodes, still)[0]
    assert ask("second") == [[["n1/gpu-0"]], [["n2/gpu-0"]]]
    assert asked == [expression]
    allocated.observe("first", first.allocations(claims, nodes[0])[0])
    assert ask("third") == [[["n1/gpu-1"]], [["n2/gpu-0"]]]
    assert asked == [expression] * 2


def test_nodes_that_differ_in_what_is_read_or_taken_are_answered_apart():
    slices = [make_gpus("n1", 2, attributes={"model": "A"}), make_gpus("n2", 2, attributes={"model": "B"})]
    slices += [make_gpus("n3", 2, attributes={"model": "A"})]
    classes = [make_class("gpu", f'device.attributes["{DRIVER}"].model == "A"')]
    allocated = taken("gpu-0", node="n3")
    assert allocate(
        slices, make_claim(exactly("r", 1)), nodes=("n1", "n2", "n3"), classes=classes, allocated=allocated
    ) == [[["n1/gpu-0"]], NONE, [["n3/gpu-1"]]]


def test_a_later_request_can_make_an_earlier_one_take_another_alternative():
    slices = [make_gpus("n1", 3)]
    first = {"name": "any", "firstAvailable": [alternative("two", 2), alternative("one", 1)]}
    claims, nodes = [make_claim(first, exactly("r", 2))], make_nodes("n1")
    (answer,) = make_allocator(slices).allocate(claims, nodes, still)
    assert [each.request for each in answer.allocations(claims, nodes[0])[0].devices.results] == ["any/one", "r", "r"]
    assert answer.choices == [1]


def test_a_constraint_picks_devices_that_have_one_value_in_common_or_none():
    numa = [device(f"gpu-{i}", attributes={"numa": i % 2}) for i in range(4)]
    same = {"matchAttribute": f"{DRIVER}/numa"}
    apart = {"distinctAttribute": f"{DRIVER}/numa"}
    slices = [make_slice("s", numa)]
    assert allocate(slices, make_claim(exactly("r", 2), constraints=[same])) == [[["n1/gpu-0", "n1/gpu-2"]]]
    assert allocate(slices, make_claim(exactly("r", 2), constraints=[apart])) == [[["n1/gpu-0", "n1/gpu-1"]]]
    assert allocate(slices, make_claim(exactly("r", 3), constraints=[apart])) == [NONE]


def test_partitions_share_the_counters_of_their_device():
    counters = make_slice("counters", pool="n1", count=2, sharedCounters=[counter_set(40)])
    parts = [device("whole", **consumes(40)), *(device(f"half-{i}", **consumes(20)) for i in range(2))]
    slices = [counters, make_slice("parts", parts, count=2)]
    assert allocate(slices, make_claim(exactly("r", 2))) == [[["n1/half-0", "n1/half-1"]]]
    assert allocate(slices, make_claim(exactly()), allocated=taken("half-1")) == [[["n1/half-0"]]]
    assert allocate(slices, make_claim(exactly("r", 3))) == [NONE]


def test_a_device_is_shared_up_to_its_capacity():
    shared = device("gpu-0", allowMultipleAllocations=True, capacity={"memory": {"value": "40Gi"}})
    wants = {"capacity": {"requests": {"memory": "15Gi"}}}
    allocator = make_allocator([make_slice("s", [shared])])
    two, nodes = [make_claim(exactly("a", **wants), exactly("b", **wants))], make_nodes("n1")
    results = allocator.allocate(two, nodes, still)[0].allocations(two, nodes[0])[0].devices.results
    assert [each.consumed_capacity for each in results] == [{"memory": "15Gi"}] * 2
    assert results[0].share_id != results[1].share_id
    three = [make_claim(exactly(name, **wants), name=name) for name in "abc"]
    assert answered(allocator, three, nodes) == [NONE]


def test_a_taint_of_the_device_or_of_a_rule_needs_a_toleration():
    tolerations = [{"operator": "Exists", "key": "broken"}]
    slices = [make_gpus("n1", 2)]
    assert allocate(slices, make_claim(exactly()), rules=[make_rule(device="gpu-0")]) == [[["n1/gpu-1"]]]
    assert allocate(slices, make_claim(exactly()), rules=[make_rule("None", driver=DRIVER)]) == [[["n1/gpu-0"]]]
    assert allocate(slices, make_claim(exactly()), rules=[make_rule(driver=DRIVER)]) == [NONE]
    tolerant = make_claim(exactly("r", tolerations=tolerations))
    assert allocate(slices, tolerant, rules=[make_rule(driver=DRIVER)]) == [[["n1/gpu-0"]]]


def test_admin_access_sees_devices_that_others_hold():
    assert allocate([make_gpus("n1", 1)], make_claim(exactly("r", adminAccess=True)), allocated=taken("gpu-0")) == [
        [["n1/gpu-0"]]
    ]


def test_pools_with_binding_conditions_are_taken_last():
    slices = [make_slice("a", [device("late", bindingConditions=["ready"])], pool="a")]
    slices.append(make_slice("b", [device("soon")], pool="b"))
    assert allocate(slices, make_claim(exactly())) == [[["b/soon"]]]


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        (make_claim(exactly(of="")), "missing device class name (unsupported request type?)"),
        (
            make_claim(exactly(of="gone")),
            'could not retrieve device class gone: deviceclass.resource.k8s.io "gone" not found',
        ),
        (make_claim(exactly("r", allocationMode="Some")), "unsupported count mode Some"),
        (make_claim(exactly("r", 33)), "adding 33 devices exceeds the claim limit of 32, with 0 already accounted for"),
    ],
)
def test_what_a_request_gets_wrong_ends_the_attempt(claim, text):
    assert allocate([make_gpus("n1")], claim) == [f"error: claim ns/claim, request r: {text}"]


def test_an_incomplete_pool_gives_no_devices_and_fails_who_asks_for_all():
    slices = [make_slice("s", [device("gpu-0")], count=2)]
    assert allocate(slices, make_claim(exactly())) == [NONE]
    (told,) = allocate(slices, make_claim(exactly("r", "All")))
    assert told.startswith("error: ")
    assert told.endswith(f"resource pool {DRIVER}/n1 is currently being updated")


def test_a_pool_that_names_a_device_twice_is_invalid():
    slices = [make_slice("s", [device("gpu-0"), device("gpu-0")])]
    assert allocate(slices, make_claim(exactly())) == ["invalid resource pools were encountered"]


def test_a_selector_that_fails_on_a_free_device_ends_the_attempt_only_if_the_search_comes_to_it():
    slices = [make_slice("s", [device("gpu-0", attributes={"numa": 1}), device("gpu-1")])]
    selective = exactly("r", 1, f'device.attributes["{DRIVER}"].numa == 1')
    assert allocate(slices, make_claim(selective)) == [[["n1/gpu-0"]]]
    (told,) = allocate(slices, make_claim(exactly("r", 2, f'device.attributes["{DRIVER}"].numa == 1')))
    assert told.startswith(
        f"error: claim ns/claim: selector #0 on device {DRIVER}/n1/gpu-1: CEL runtime error: no such key: numa. "
    )


def test_an_error_is_one_node_s_and_is_told_by_the_devices_and_the_claim_that_were_asked_about():
    slices = [make_gpus(name, attributes={"numa": 1} if name == "n3" else {}) for name in ("n1", "n2", "n3")]
    allocator, request = make_allocator(slices), exactly("r", 1, f'device.attributes["{DRIVER}"].numa == 1')
    answers = allocator.allocate([make_claim(request)], make_nodes("n1", "n2", "n3"), still)
    assert [hasattr(each, "fails") and each.fails for each in answers] == [True, True, False]
    (answer,) = allocator.allocate([make_claim(request, name="other")], make_nodes("n2"), still)
    assert answer.text.startswith(f"claim ns/other: selector #0 on device {DRIVER}/n2/gpu-0: CEL runtime error: ")


def test_of_a_pool_whose_devices_choose_their_nodes_each_node_gets_those_for_it():
    zone = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}
    devices = [device("one", nodeName="n1"), device("two", nodeName="n2"), device("zone", nodeSelector=zone)]
    devices.append(device("any", allNodes=True))
    allocator = make_allocator([make_slice("s", devices, node=None, perDeviceNodeSelection=True)])
    nodes = [*make_nodes("n1", "n2", "n3", zone="b"), *make_nodes("n4", zone="a")]
    answers = answered(allocator, [make_claim(exactly())], nodes)
    assert answers == [[["pool/one"]], [["pool/two"]], [["pool/any"]], [["pool/zone"]]]
    (counts,) = zip(*allocator.count([make_claim(exactly())], nodes, still), strict=True)
    assert [each.offered for each in counts] == [2, 2, 1, 2]


def test_a_renewed_allocator_sees_the_new_slices():
    before = make_allocator([make_gpus("n1", 1)])
    after = make_allocator([make_gpus("n1", 1), make_gpus("n2", 1)], previous=before)
    assert answered(after, [make_claim(exactly())], make_nodes("n1", "n2")) == [[["n1/gpu-0"]], [["n2/gpu-0"]]]


def test_a_shared_pool_that_is_obsolete_for_one_node_still_serves_the_others():
    slices = [
        make_slice("shared", [device("a")], node=None, pool="p", allNodes=True),
        make_slice("own", [device("b")], node="n1", pool="p"),
        make_slice("later", [device("c")], node="n3", pool="p", generation=2),
    ]
    assert allocate(slices, make_claim(exactly()), nodes=("n2", "n1", "n3")) == [[["p/a"]], NONE, [["p/c"]]]


def test_own_and_shared_pools_are_searched_in_the_order_of_their_names():
    shared = make_slice("shared", [device("x")], node=None, pool="m", allNodes=True)
    slices = [shared, make_slice("1", [device("y")], node="a"), make_slice("2", [device("z")], node="z")]
    answers = allocate(slices, make_claim(exactly("r", 2)), nodes=("a", "z"))
    assert answers == [[["a/y", "m/x"]], [["m/x", "z/z"]]]


def test_pools_are_kept_as_long_as_all_their_slices_are():
    (node,) = make_nodes("n1")
    slices = [make_slice(name, [device("gpu-0")], node=None, pool=name, allNodes=True) for name in "ab"]
    before = make_allocator(slices)
    kept = before.index.pools_of(node).pools
    slices[1] = make_slice("b", [device("gpu-1")], node=None, pool="b", allNodes=True)
    after = make_allocator(slices, previous=before).index.pools_of(node).pools
    assert after[0] is kept[0]
    assert after[1] is not kept[1]
    elsewhere = make_slice("elsewhere", [device("gpu-0")], node="n2", pool="a", generation=2)
    later = make_allocator([*slices, elsewhere], previous=before).index.pools_of(node).pools
    assert later[0] is not kept[0]
