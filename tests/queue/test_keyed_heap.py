import weakref

from hypothesis import given
from hypothesis import strategies as st
from tests.queue.scene import info
from tests.queue_checks import assert_heap

from bayplan.queue.queued_pod import KeyedHeap, QueuedPodInfo


def queued(name, sequence=0):
    return QueuedPodInfo(info(name), timestamp=0.0, sequence=sequence)


def test_dead_entries_do_not_pile_up():
    heap = KeyedHeap()
    pod = queued("p")
    for key in range(1000):
        heap.push(pod, (-key,))
        # This checks the number of dead entries too.
        assert_heap(heap)
    assert [queued.uid for queued in heap] == ["p"]


def test_a_pod_that_left_is_held_no_longer():
    heap = KeyedHeap()
    for number in range(10):
        heap.push(queued(f"p{number}"), (number,))
    pods = [weakref.ref(pod.pod_info) for pod in heap]
    for number in range(5, 10):
        heap.discard(f"p{number}")
    assert [pod() is not None for pod in pods] == [True] * 5 + [False] * 5


# Few, so that pods come back and move, or many, so that dead entries are thrown out.
NUMBERS = st.integers(0, 3) | st.integers(0, 90)


@given(st.lists(st.tuples(st.sampled_from(["push", "discard", "pop"]), NUMBERS, st.integers(0, 3))))
def test_the_heap_behaves_like_a_sorted_list(steps):
    heap, model = KeyedHeap(), {}
    for sequence, (step, number, key) in enumerate(steps):
        if step == "push":
            heap.push(queued(str(number), sequence), (key,))
            model[str(number)] = (key, sequence)
        elif step == "discard":
            heap.discard(str(number))
            model.pop(str(number), None)
        else:
            popped = heap.peek()
            heap.discard(popped.uid if popped else "")
            expected = min(model, key=model.__getitem__, default=None)
            assert (popped and popped.uid) == expected
            model.pop(expected, None)
        assert_heap(heap)
        assert len(heap) == len(model)
        assert {pod.uid for pod in heap} == model.keys()
