import tracemalloc
from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.response import ApiCall
from bayplan.scheduler.dispatcher import EventQueue, event_write


def event(uid, number, size=100, *, namespace="", series=False):
    """An Event about the pod `uid`, of a namespace of its own unless one is given."""
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace or uid}/events"
    create = ApiCall("POST", path, uid, b"y" * size) if series else None
    return event_write(uid, ApiCall("POST", path, f"{number}", b"x" * size), create, repeatable=False)


def room_for(count):
    return count * event("u", 0).size


STEPS = st.lists(
    st.one_of(st.tuples(st.just("put"), st.sampled_from("uvw")), st.tuples(st.just("done"), st.integers(0, 3)))
)


@given(STEPS)
def test_one_event_of_a_pod_at_a_time_in_the_order_of_their_coming(steps):
    queue, came, got, under_way = EventQueue(), defaultdict(list), defaultdict(list), []

    def begin(write):
        assert write.uid not in [each.uid for each in under_way]
        under_way.append(write)
        got[write.uid].append(write.call.about)

    def end():
        following = queue.done(under_way.pop(0))
        if following is not None:
            begin(following)

    for number, (kind, value) in enumerate(steps):
        if kind == "put":
            write = event(value, number)
            came[value].append(f"{number}")
            if queue.put(write):
                begin(write)
        elif under_way:
            end()
    while under_way:
        end()
    assert (got, queue.dropped) == (came, 0)


def test_what_finds_no_room_is_dropped_and_counted():
    queue = EventQueue(max_bytes=room_for(10))
    writes = [event(f"u{number}", number) for number in range(25)]
    assert [queue.put(write) for write in writes] == [True] * 10 + [False] * 15
    assert queue.dropped == 15
    assert queue.done(writes[0]) is None
    assert queue.put(event("v", 99)), "there is room again"


def test_however_many_namespaces_are_not_taken_there_is_room_for_another():
    queue = EventQueue(max_bytes=room_for(300))
    taken = [queue.put(event(f"u{number}", number, namespace="bad")) for number in range(300)]
    assert (taken.count(True), queue.dropped) == (200, 100)
    for bad in range(3):
        for number in range(200):
            queue.put(event(f"b{bad}-{number}", number, namespace=f"bad{bad}"))
        assert queue.put(event(f"v{bad}", 0, namespace=f"good{bad}"))


def test_a_burst_of_ten_thousand_pods_in_one_namespace_loses_no_event():
    queue = EventQueue()
    assert all(queue.put(event(f"u{number}", number, size=500, namespace="ns")) for number in range(10_000))


def test_what_waits_behind_an_event_that_has_no_answer_is_bounded_too():
    queue = EventQueue(max_bytes=room_for(20))
    first = event("u", 0)
    assert queue.put(first)
    assert not any(queue.put(event("u", number)) for number in range(1, 100))
    assert queue.dropped == 86
    following = queue.done(first)
    assert following.call.about == "1"


def test_it_takes_no_more_bytes_than_its_bound():
    bound = 2 * 2**20
    tracemalloc.start()
    try:
        queue = EventQueue(max_bytes=bound)
        before = tracemalloc.get_traced_memory()[0]
        kept = []
        for number in range(20_000):
            write = event(f"uid-{number % 5_000}", number, size=number % 2_000, series=bool(number % 2))
            if queue.put(write):
                kept.append(write)
        assert queue.dropped > 10_000
        assert tracemalloc.get_traced_memory()[0] - before < bound
    finally:
        tracemalloc.stop()
