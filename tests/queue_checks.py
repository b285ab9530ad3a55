"""What always holds of the scheduling queue, asserted part by part: the invariants of its README."""

from collections import Counter

from bayplan.queue.backing_off import BackingOffPods
from bayplan.queue.in_flight import EventMoves, InFlightPods
from bayplan.queue.queued_groups import QueuedGroups
from bayplan.queue.queued_pod import _COMPACT_ABOVE, KeyedHeap, QueuedPodInfo, SubQueue
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.queue.sub_queues import SubQueues
from bayplan.queue.unschedulable_pods import UnschedulablePods, _held_in


def assert_consistent(queue: SchedulingQueue) -> None:
    """Every pod is in one place, and every part of the queue is as it says; O(n)."""
    _assert_sub_queues(queue._sub_queues)
    _assert_in_flight(queue._in_flight)
    _assert_moves(queue._moves)
    _assert_groups(queue._groups)
    queued = {uid for uid, each in queue._sub_queues.entities.items() if isinstance(each, QueuedPodInfo)}
    members = set(queue._groups._key_of)
    assert not queued & members, "a pod waits alone and in a group"
    assert not any(pod.queued.uid in members for pod in queue._in_flight), "a member waits and is in flight"
    assert not any(pod.queued.uid in queued for pod in queue._in_flight), "a pod is queued and in flight"


def assert_heap(heap: KeyedHeap) -> None:
    """The heap is a heap, and every pod in it has exactly one live entry."""
    entries = heap._heap
    assert all(entries[(i - 1) // 2][:3] < entries[i][:3] for i in range(1, len(entries))), "heap order broken"
    live = [entry for entry in entries if heap._live.get(entry[3], (None,))[0] is entry]
    assert len(live) == len(heap._live), "an entry is missing from the heap"
    assert all(uid == queued.uid == entry[3] for uid, (entry, queued) in heap._live.items()), "another pod's uid"
    assert len(entries) <= max(_COMPACT_ABOVE, 2 * len(live) + 1), "dead entries pile up"


def _assert_groups(groups: QueuedGroups) -> None:
    """Every member is in one place, and every group in a sub-queue unless its round is under way."""
    places: list[tuple[str, object]] = [(uid, key) for key, pods in groups._incomplete.items() for uid in pods]
    for key, entity in groups._entities.items():
        assert entity.group.key == key, "another group's entity"
        assert entity.in_round == (entity.sub_queue is None), "a group is nowhere"
        assert entity.in_round or entity.members, "a group waits without members"
        places += [(uid, key) for uid in (entity.late if entity.in_round else entity.members)]
        assert entity.in_round or entity.lead in entity.members, "nobody stands for the group"
        assert entity.in_round or entity.gated.keys() <= entity.members.keys(), "a gate of no member"
        assert (entity.uid in groups.sub_queues.entities) == (not entity.in_round), "a group is lost"
        assert not groups._incomplete.get(key), "a known group's member waits for it"
    assert all(groups._incomplete.values()), "an empty room is kept"
    assert len(places) == len(groups._key_of), "a member is lost, or in two places"
    assert dict(places) == groups._key_of, "a member is in the wrong group"


def _assert_sub_queues(sub_queues: SubQueues) -> None:
    """Every pod is in the one sub-queue it names, and each sub-queue may hold it."""
    heaps, backoff, error_backoff = sub_queues._heaps, sub_queues.backoff, sub_queues._error_backoff
    for sub_queue, heap in heaps.items():
        assert all(queued.sub_queue is sub_queue for queued in heap), f"a pod in {sub_queue} says otherwise"
    assert_heap(sub_queues._active)
    assert_heap(error_backoff)
    assert_heap(sub_queues._retries)
    _assert_backing_off(backoff)
    _assert_waiting(sub_queues.waiting)
    assert all(each.sub_queue is SubQueue.UNSCHEDULABLE for each in sub_queues._retries), "a time for no waiting pod"
    in_heaps = [queued.uid for heap in heaps.values() for queued in heap]
    assert len(in_heaps) == len(set(in_heaps)), "a pod stands in two heaps"
    assert len(in_heaps) + len(sub_queues.waiting) == len(sub_queues.entities), "a pod is lost"
    for uid, queued in sub_queues.entities.items():
        assert queued.uid == uid, "a pod under another uid"
        is_gated = queued.sub_queue is SubQueue.GATED
        assert (queued.gating_plugin is not None) == is_gated, "a gate and its sub-queue disagree"
    for queued in (*backoff, *error_backoff):
        assert queued.backs_off_until is not None, "a pod backs off without end"
    assert all(queued.rejector_plugins for queued in backoff), "a pod without rejector may skip its back-off"
    rejected = [each for each in error_backoff if isinstance(each, QueuedPodInfo) and each.rejector_plugins]
    assert not rejected, "a rejected pod waits as an error"


def _assert_backing_off(backoff: BackingOffPods) -> None:
    """Each pod is a candidate or parked and in the order of all, and each kind has its pods."""
    assert_heap(backoff._all)
    assert_heap(backoff._candidates)
    known = {queued.uid for queued in backoff._all}
    assert known == backoff._keys.keys(), "a key is lost"
    parked = {queued.uid for pods in backoff._parked.values() for queued in pods}
    candidates = {queued.uid for queued in backoff._candidates}
    assert parked == backoff._parked_as.keys(), "a parked pod is lost"
    assert not parked & candidates, "a pod is parked and a candidate"
    assert parked | candidates == known, "a pod backs off and is neither a candidate nor parked"
    assert all(len(pods) for pods in backoff._parked.values()), "an empty kind is kept"
    pods = Counter(kind.key for kind in backoff._rejected_as.values())
    assert pods == {key: kind.pods for key, kind in backoff._kinds.items()}, "a kind outlives its pods"


def _assert_waiting(waiting: UnschedulablePods) -> None:
    """The index agrees with the pods, and their order is one of time."""
    indexed = {(key, uid) for key, bucket in waiting._by_plugin.items() for uid in bucket}
    pods = [*waiting.rejected.values(), *waiting.gated.values()]
    expected = {((_held_in(pod), plugin), pod.uid) for pod in pods for plugin in pod.rejector_plugins}
    assert indexed == expected, "the plugin index and the pods disagree"
    assert all(waiting._by_plugin.values()), "an empty index bucket is kept"
    woken = [pod for pod in pods if pod.news_seen is None or pod.sub_queue is SubQueue.GATED]
    assert all(pod.rejector_plugins for pod in woken), "a pod waits that no plugin can wake"
    assert all(pod.sub_queue is SubQueue.UNSCHEDULABLE for pod in waiting.rejected.values())
    assert all(pod.sub_queue is SubQueue.GATED and pod.gating_plugin for pod in waiting.gated.values())
    # Groups that wait for any news come later than their timestamp says.
    stamps = [pod.timestamp for pod in waiting.rejected.values() if pod.news_seen is None]
    assert stamps == sorted(stamps), "unschedulable pods out of order"


def _assert_in_flight(in_flight: InFlightPods) -> None:
    """No event is kept that no pod needs, none is gone for nothing, and sizes add up."""
    since = [pod.since for pod in in_flight._pods.values()]
    assert since == sorted(since), "pods in flight out of order"
    assert not since or since[0] <= in_flight._dropped, "events are kept that no pod missed"
    assert since or not in_flight._events, "events kept for nobody"
    assert in_flight._bytes == sum(size for size, _ in in_flight._events), "sizes do not add up"
    assert in_flight._bytes <= in_flight._keep_bytes, "more is kept than may be"
    assert not in_flight._pods.keys() & in_flight._being_bound.keys(), "a pod is tried while it is bound"


def _assert_moves(moves: EventMoves) -> None:
    """Sizes add up, and nothing waits where nothing is under way."""
    assert moves._bytes == sum(size for size, _, _ in moves._later) <= moves._keep_bytes, "sizes do not add up"
    assert moves._under_way is not None or not moves._later, "an event waits for nothing"
