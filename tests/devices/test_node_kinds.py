"""What is kept between attempts answers as if nothing had been kept."""

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

from bayplan.devices.allocated_state import AllocatedState

NAMES = ("n1", "n2", "n3", "bare")
OPTIONS = {"pool": "p", "count": 3}
SLICES = [
    *(make_gpus(name, 3) for name in NAMES[:3]),
    make_slice("counters", pool="p", count=3, sharedCounters=[counter_set(40)]),
    make_slice("part-1", [device("part-1", **consumes(30))], node="n1", **OPTIONS),
    make_slice("part-2", [device("part-2", **consumes(30))], node="n2", **OPTIONS),
]
EVERYWHERE = make_slice("all", [device("far-0"), device("far-1")], node=None, pool="far", allNodes=True)
steps = st.lists(st.tuples(st.sampled_from((0, 1, 2)), st.integers(1, 4), st.booleans()), max_size=12)


@settings(max_examples=60)
@given(steps, st.booleans())
def test_what_is_kept_between_attempts_answers_as_if_nothing_had_been_kept(steps, everywhere):
    slices = [*SLICES, EVERYWHERE] if everywhere else SLICES
    allocated = AllocatedState()
    kept, nodes, has = make_allocator(slices, allocated=allocated), make_nodes(*NAMES), []
    for number, (where, count, packs) in enumerate(steps):
        if count == 4 and has:
            allocated.observe(has.pop(where % len(has)), None)
            continue
        claim = make_claim(exactly("r", min(count, 3)), name=f"c{number}")
        fresh = make_allocator(slices, allocated=allocated)
        assert answered(kept, [claim], nodes, packs=packs) == answered(fresh, [claim], nodes, packs=packs)
        answers = kept.allocate([claim], nodes, still, packs=packs)
        if hasattr(answers[where], "allocations"):
            allocated.observe(f"c{number}", answers[where].allocations([claim], nodes[where])[0])
            has.append(f"c{number}")


def test_more_changes_than_are_remembered_are_no_secret():
    allocated = AllocatedState()
    kept, nodes = make_allocator([make_gpus("n1", 2)], allocated=allocated), make_nodes("n1")
    claims = [make_claim(exactly())]
    (first,) = kept.allocate(claims, nodes, still)
    for turn in range(3001):
        allocated.observe("c", None if turn % 2 else first.allocations(claims, nodes[0])[0])
    assert answered(kept, claims, nodes) == [[["n1/gpu-1"]]]


def test_changes_are_told_by_pool_as_long_as_they_are_few():
    allocated = AllocatedState()
    allocator = make_allocator([make_gpus("n1"), make_gpus("n2")], allocated=allocated)
    claims, nodes = [make_claim(exactly())], make_nodes("n1", "n2")
    answers = allocator.allocate(claims, nodes, still)
    (first,), (second,) = (each.allocations(claims, node) for each, node in zip(answers, nodes, strict=True))
    before = allocated.latest
    assert allocated.changed_since(before) == set()
    allocated.observe("a", first)
    between = allocated.latest
    allocated.observe("b", second)
    assert allocated.changed_since(before) == {("gpu.example.com", "n1"), ("gpu.example.com", "n2")}
    assert allocated.changed_since(between) == {("gpu.example.com", "n2")}
    for turn in range(3000):
        allocated.observe("b", None if turn % 2 == 0 else second)
    assert allocated.changed_since(between) is None


def test_a_node_that_got_other_labels_has_the_devices_of_these():
    selector = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}]}
    slices = [make_slice("s", [device("gpu-0")], node=None, pool="zonal", nodeSelector=selector)]
    allocator = make_allocator(slices)
    claims, old, new = [make_claim(exactly())], make_nodes("n1", zone="a"), make_nodes("n1", zone="b")
    assert answered(allocator, claims, old) == ["cannot allocate all claims"]
    assert answered(allocator, claims, new) == [[["zonal/gpu-0"]]]
