import tracemalloc
from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from bayplan.scheduler.api_calls import JSON, ApiCall
from bayplan.scheduler.event_queue import EventQueue


def put(queue, uid, number, size=100, *, series=False, repeatable=False):
    call = ApiCall("POST", f"/apis/events/{uid}", b"x" * size, JSON, f"{number}")
    if_missing = ApiCall("POST", "/apis/events", b"y" * size, JSON, uid) if series else None
    queue.put(uid, call, if_missing, repeatable=repeatable)


def bytes_of(count):
    """What so many Events take."""
    queue = EventQueue()
    put(queue, "u", 0)
    return count * queue.take().size


def taken(queue):
    """Everything that is left, in order."""
    left = []
    while (each := queue.take()) is not None:
        left.append(each.call.about)
        queue.done(each.uid)
    return left


STEPS = st.lists(
    st.one_of(st.tuples(st.just("put"), st.sampled_from("uvw")), st.tuples(st.just("done"), st.integers(0, 3)))
)


@given(STEPS)
def test_one_event_of_a_pod_at_a_time_in_the_order_of_their_coming(steps):
    queue, came, got, under_way = EventQueue(), defaultdict(list), defaultdict(list), []
    for number, (kind, value) in enumerate(steps):
        if kind == "put":
            came[value].append(f"{number}")
            put(queue, value, number, repeatable=number % 3 == 0)
        elif under_way and value < 2:
            queue.done(under_way.pop(0))
        elif (each := queue.take()) is not None:
            assert each.uid not in under_way
            under_way.append(each.uid)
            got[each.uid].append(each.call.about)
    for uid in under_way:
        queue.done(uid)
    while (each := queue.take()) is not None:
        got[each.uid].append(each.call.about)
        queue.done(each.uid)
    assert got == {uid: numbers for uid, numbers in came.items() if numbers}
    assert (len(queue), queue.ready, queue.dropped) == (0, 0, 0)


def test_what_waiting_pods_are_told_comes_last_but_in_order_for_each_pod():
    queue = EventQueue()
    put(queue, "u", "u failed", repeatable=True)
    put(queue, "v", "v failed", repeatable=True)
    put(queue, "v", "v bound")
    put(queue, "w", "w bound")
    assert taken(queue) == ["w bound", "u failed", "v failed", "v bound"]


def test_nothing_that_waiting_pods_are_told_is_given_where_it_is_not_wanted():
    queue = EventQueue()
    put(queue, "u", "u failed", repeatable=True)
    put(queue, "w", "w bound")
    assert queue.take(repeatable=False).uid == "w"
    assert queue.take(repeatable=False) is None
    assert (queue.ready, queue.take().uid) == (1, "u")


def test_what_waiting_pods_are_told_is_dropped_first():
    queue = EventQueue(max_bytes=bytes_of(10))
    for number in range(12):
        put(queue, f"u{number}", number, repeatable=number % 4 == 1)
    assert taken(queue) == ["0", "2", "3", "4", "6", "7", "8", "10", "11", "9"]


def test_the_oldest_are_dropped_where_there_is_no_room():
    queue = EventQueue(max_bytes=bytes_of(10))
    for number in range(25):
        put(queue, f"u{number}", number)
    assert queue.dropped == 15
    assert taken(queue) == [f"{number}" for number in range(15, 25)]


def test_a_pod_whose_event_was_dropped_keeps_its_later_ones():
    queue = EventQueue(max_bytes=bytes_of(2))
    for number in range(3):
        put(queue, "u", number)
    assert taken(queue) == ["1", "2"]


def test_what_waits_for_an_event_that_is_never_answered_is_bounded_too():
    queue = EventQueue(max_bytes=bytes_of(5))
    put(queue, "u", 0)
    assert queue.take().uid == "u"
    for number in range(1, 100):
        put(queue, "u", number)
    assert (len(queue), queue.dropped) == (5, 94)
    queue.done("u")
    assert taken(queue) == [*"12345"]


def test_it_takes_no_more_bytes_than_its_bound():
    bound = 2 * 2**20
    tracemalloc.start()
    try:
        queue = EventQueue(max_bytes=bound)
        before = tracemalloc.get_traced_memory()[0]
        for number in range(20_000):
            put(queue, f"uid-{number % 5_000}", number, size=number % 2_000, series=bool(number % 2))
        assert queue.dropped > 10_000
        assert tracemalloc.get_traced_memory()[0] - before < bound
    finally:
        tracemalloc.stop()
