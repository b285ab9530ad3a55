"""A copy of the cache: the same at first, and neither hears of what becomes of the other."""

import threading

from hypothesis import given
from hypothesis import strategies as st
from tests.builders import make_node, make_pod_info
from tests.cache_checks import assert_adds_up

from bayplan.api.meta_objects import ObjectMeta
from bayplan.api.workload_objects import PodDisruptionBudget
from bayplan.cache.cache import Cache, CacheSnapshot
from bayplan.cache.incremental_view import MatchingPods
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import pod_requests

steps = st.lists(
    st.tuples(st.sampled_from(["node", "no node", "pod", "no pod", "assume"]), st.integers(0, 4), st.integers(0, 9)),
    max_size=40,
)


def take(cache, happened):
    for what, node, pod in happened:
        if what == "node":
            cache.set_node(
                make_node(
                    f"n{node}", cpu=str(node + 1), memory="8Gi", labels={"topology.kubernetes.io/zone": f"z{node % 2}"}
                )
            )
        elif what == "no node":
            cache.remove_node(f"n{node}")
        elif what == "pod":
            cache.set_pod(make_pod_info(f"p{pod}", uid=f"u{pod}", node=f"n{node}", cpu="100m"))
        elif what == "assume" and cache.node_of(f"u{pod}") is None:
            cache.assume_pod(make_pod_info(f"p{pod}", uid=f"u{pod}", cpu="100m"), f"n{node}")
        elif what == "no pod":
            cache.remove_pod(f"u{pod}")


def state(cache):
    nodes = cache.nodes
    rows = nodes.rows().tolist()
    return (
        [(row, nodes.names[row], sorted(nodes.pods[row]), int(nodes.pod_count[row])) for row in rows],
        {name: column[rows].tolist() for name, column in nodes.allocatable.items()},
        {name: column[rows].tolist() for name, column in nodes.requested.items()},
        {name: sorted(pods) for name, pods in cache.without_node.items()},
        nodes.tree.in_turn(),
        [cache.node_of(f"u{pod}") for pod in range(10)],
    )


@given(steps, steps, steps)
def test_a_copy_is_as_the_cache_was_and_each_goes_its_own_way(before, on_the_cache, on_the_copy):
    cache = Cache()
    take(cache, before)
    was = state(cache)
    snapshot = CacheSnapshot(cache)
    take(cache, on_the_cache)
    copy, now = snapshot.cache(), state(cache)
    assert state(copy) == was
    assert_adds_up(copy)
    take(copy, on_the_copy)
    assert state(cache) == now
    assert_adds_up(copy)
    assert_adds_up(cache)


def test_who_reads_the_logs_of_a_copy_reads_all_pods():
    cache = Cache()
    cache.set_node(make_node("n1", cpu="4"))
    cache.set_pod(make_pod_info("p", node="n1", cpu="1"))
    copy = CacheSnapshot(cache).cache()
    counts = MatchingPods(copy.nodes, lambda pod: 1).counts()
    assert counts[copy.nodes.row("n1")] == 1


def test_what_plugins_look_up_is_copied_and_whether_it_was_listed():
    cache = Cache()
    budget = PodDisruptionBudget(metadata=ObjectMeta(name="b", namespace="ns"))
    lister = cache.listers.of(PodDisruptionBudget)
    lister.set(budget)
    lister.synced = True
    copied = CacheSnapshot(cache).cache().listers.of(PodDisruptionBudget)
    lister.delete("ns/b")
    assert (copied.get("ns/b"), copied.synced, copied.version) == (budget, True, 1)


def test_requests_are_worked_out_on_two_threads_at_once():
    pods = [make_pod_info(f"p{number}", cpu=f"{number % 4000 + 1}m", memory=f"{number}Ki") for number in range(12_000)]
    wrong, raised = [], []

    def work():
        try:
            for number, pod in enumerate(pods):
                if pod_requests(pod.pod).amounts["cpu"] != number % 4000 + 1:
                    wrong.append(number)
                PodInfo(pod.pod)
        except Exception as error:  # noqa: BLE001  told by the assertion
            raised.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (wrong, raised) == ([], [])
