from hypothesis import given
from hypothesis import strategies as st
from tests.queue.scene import info

from bayplan.queue.keyed_heap import KeyedHeap
from bayplan.queue.queued_pod import QueuedPodInfo


def queued(name, sequence=0):
    return QueuedPodInfo(info(name), timestamp=0.0, sequence=sequence)


def drain(heap):
    names = []
    while (pod := heap.pop()) is not None:
        heap.validate()
        names.append(pod.pod_info.name)
    return names


def test_equal_keys_keep_the_order_of_arrival():
    heap = KeyedHeap()
    for sequence, name in enumerate("dacb"):
        heap.push(queued(name, sequence), (0,))
    assert drain(heap) == ["d", "a", "c", "b"]


def test_a_pushed_pod_moves_when_its_key_changes_and_is_there_once():
    heap = KeyedHeap()
    moved = queued("moved", 2)
    heap.push(queued("first", 1), (5,))
    heap.push(moved, (9,))
    heap.push(moved, (1,))
    assert len(heap) == 2
    assert drain(heap) == ["moved", "first"]


def test_a_pod_that_left_and_came_back_under_the_same_key_is_there_once():
    heap = KeyedHeap()
    pod = queued("p")
    heap.push(pod, (1,))
    heap.discard("p")
    heap.push(pod, (1,))
    assert drain(heap) == ["p"]


def test_a_discarded_pod_is_neither_seen_nor_counted():
    heap = KeyedHeap()
    heap.push(queued("gone"), (1,))
    heap.push(queued("stays"), (2,))
    heap.discard("gone")
    heap.discard("never there")
    assert len(heap) == 1
    assert [pod.uid for pod in heap] == ["stays"]
    assert drain(heap) == ["stays"]


def test_dead_entries_do_not_pile_up():
    heap = KeyedHeap()
    pod = queued("p")
    for key in range(1000):
        heap.push(pod, (-key,))
        # This checks the number of dead entries too.
        heap.validate()
    assert drain(heap) == ["p"]


@given(st.lists(st.tuples(st.sampled_from(["push", "discard", "pop"]), st.integers(0, 90), st.integers(0, 3))))
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
            popped = heap.pop()
            expected = min(model, key=model.__getitem__, default=None)
            assert (popped and popped.uid) == expected
            model.pop(expected, None)
        heap.validate()
        assert len(heap) == len(model)
