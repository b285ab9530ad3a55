import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_node, make_pod_info

from bayplan.cache.cache import Cache
from bayplan.cache.incremental_view import MatchingPods, MatchingPodsOfScratch
from bayplan.cache.scratch_table import ScratchTable


def stays(pod):
    return pod.pod.metadata.deletion_timestamp is None


def is_web(pod):
    return pod.pod.metadata.labels["app"] == "web"


def pod_on(uid, app="web", *, deleting=False):
    return make_pod_info(uid, uid=uid, node="n1", labels={"app": app}, deleting=deleting)


def trial(*pods):
    cache = Cache()
    cache.set_node(make_node("n1"))
    for pod in pods:
        cache.set_pod(pod)
    scratch = ScratchTable(cache.nodes)
    scratch.follow()
    of_source = MatchingPods(cache.nodes, lambda pod: stays(pod) and is_web(pod))
    return cache, scratch, MatchingPodsOfScratch(scratch, of_source, is_web)


def test_a_terminating_pod_that_is_really_gone_is_owed_to_nobody():
    cache, scratch, matching = trial(pod_on("a", deleting=True), pod_on("b"))
    row = cache.nodes.row("n1")
    scratch.remove_pod(scratch.pods[row]["a"], row)
    cache.remove_pod("a")
    scratch.follow()
    assert matching.counts()[row] == 1
    assert not scratch.gone


def test_a_terminating_pod_that_is_added_counts_until_it_is_taken_off_again():
    cache, scratch, matching = trial(pod_on("a"))
    row = cache.nodes.row("n1")
    nominated = pod_on("d", deleting=True)
    scratch.place([nominated], row)
    assert matching.counts()[row] == 2
    scratch.remove_pod(nominated, row)
    assert matching.counts()[row] == 1
    scratch.place([nominated], row)
    scratch.restore(np.array([row]))
    assert matching.counts()[row] == 1


def test_what_was_moved_is_counted_without_what_is_there():
    cache, scratch, _ = trial(pod_on("a"), pod_on("b", deleting=True), pod_on("c", "db"))
    row = cache.nodes.row("n1")
    moved = MatchingPodsOfScratch(scratch, None, is_web)
    assert moved.counts()[row] == 0
    scratch.place([pod_on("d"), pod_on("e", "db")], row)
    assert moved.counts()[row] == 1
    for uid in ("a", "b", "c"):
        scratch.remove_pod(scratch.pods[row][uid], row)
    assert moved.counts()[row] == -1
    version = moved.version
    cache.set_pod(pod_on("f"))
    scratch.follow()
    assert (moved.counts()[row], moved.version > version) == (0, True)


steps = st.lists(st.sampled_from(["a", "b", "c", "restore", "end-a", "lose-b"]), max_size=15)


@settings(max_examples=60)
@given(steps)
def test_counts_are_those_kube_scheduler_updates_pod_by_pod(taken):
    pods = {"a": pod_on("a"), "b": pod_on("b", deleting=True), "c": pod_on("c", "db", deleting=True)}
    cache, scratch, matching = trial(*pods.values())
    row = cache.nodes.row("n1")
    expected = 1
    version = None
    for step in taken:
        there = cache.nodes.pods[row]
        if step in ("restore", "end-a", "lose-b"):
            if step == "end-a":
                cache.set_pod(pod_on("a", deleting=True))
            elif step == "lose-b" and "b" in there:
                cache.remove_pod("b")
            scratch.follow()
            scratch.restore(np.array([row]))
            expected = sum(stays(pod) and is_web(pod) for pod in there.values())
        elif step in there:
            pod = there[step]
            if step in scratch.pods[row]:
                scratch.remove_pod(pod, row)
                expected -= is_web(pod)
            else:
                scratch.place([pod], row)
                expected += is_web(pod)
        before, found = version, int(matching.counts()[row])
        version = (matching.version, found)
        assert found == expected
        assert before is None or before[0] != version[0] or before[1] == found
