import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_node, make_pod_info

from bayplan.cache.cache import Cache
from bayplan.cache.incremental_view import MatchingPods
from bayplan.cache.pod_info import PodInfo


def is_web(pod: PodInfo) -> bool:
    return (pod.pod.metadata.labels or {}).get("app") == "web"


def pod_on(node: str, uid: str, app: str, note: str = "") -> PodInfo:
    return make_pod_info(uid, uid=uid, node=node, labels={"app": app, "note": note})


TOO_LARGE_TO_LOG = "x" * 2**15


@pytest.fixture
def cache() -> Cache:
    """A cache with two nodes."""
    cache = Cache()
    for name in ("n1", "n2"):
        cache.set_node(make_node(name))
    return cache


def test_a_weight_sums_up(cache) -> None:
    for uid in ("a", "b"):
        cache.set_pod(pod_on("n1", uid, "web"))
    assert MatchingPods(cache.nodes, lambda pod: -3).counts().sum() == -6


@pytest.fixture
def looks(cache) -> tuple[MatchingPods, list[str]]:
    """A count of all pods, of which there are two, and the UIDs that it looks at from now on."""
    seen: list[str] = []

    def watch(pod: PodInfo) -> bool:
        seen.append(pod.uid)
        return True

    cache.set_pod(pod_on("n1", "a", "web"))
    cache.set_pod(pod_on("n2", "b", "web"))
    matching = MatchingPods(cache.nodes, watch)
    matching.counts()
    seen.clear()
    return matching, seen


def test_only_pods_that_came_or_went_are_looked_at_again(cache, looks) -> None:
    matching, seen = looks
    cache.set_pod(pod_on("n2", "c", "web"))
    matching.counts()
    matching.counts()
    assert seen == ["c"]
    cache.remove_pod("b")
    matching.counts()
    assert seen == ["c", "b"]


def test_large_pods_are_looked_at_once_and_nobody_else_is_for_them(cache, looks) -> None:
    matching, seen = looks
    cache.set_pod(pod_on("n2", "c", "web", TOO_LARGE_TO_LOG))
    assert matching.counts().sum() == 3
    cache.remove_pod("c")
    assert matching.counts().sum() == 2
    assert seen == ["c", "c"]


def test_the_version_grows_only_with_a_different_answer(cache) -> None:
    matching = MatchingPods(cache.nodes, is_web)
    matching.counts()
    before = matching.version
    cache.set_pod(pod_on("n1", "a", "db"))
    matching.counts()
    assert matching.version == before
    cache.set_pod(pod_on("n1", "a", "web"))
    matching.counts()
    assert matching.version > before


def test_a_pod_that_looks_different_is_looked_at_again_and_an_equal_version_is_not(cache) -> None:
    cache.set_pod(pod_on("n1", "a", "web"))
    staying = MatchingPods(cache.nodes, lambda pod: pod.pod.metadata.deletion_timestamp is None)
    assert staying.counts().sum() == 1
    cache.set_pod(pod_on("n1", "a", "web"))
    position = cache.nodes.pods_changed.position
    cache.set_pod(make_pod_info("a", uid="a", node="n1", labels={"app": "web"}, deleting=True))
    assert cache.nodes.pods_changed.position == position + 1
    assert staying.counts().sum() == 0


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("node"), st.integers(0, 90)),
        st.tuples(st.just("no node"), st.integers(0, 90)),
        st.tuples(st.sampled_from(["web", "db", "gone"]), st.integers(0, 3), st.integers(0, 90), st.booleans()),
        st.tuples(st.just("count")),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(crowd=st.sampled_from([0, 70]), steps=STEPS)
def test_after_any_changes_counts_equal_a_count_from_scratch(crowd: int, steps: list[tuple[object, ...]]) -> None:
    cache = Cache()
    matching = MatchingPods(cache.nodes, is_web)
    for number in range(crowd):
        cache.set_node(make_node(f"n{number}"))
    for step in [*steps, ("count",)]:
        match step:
            case ("node", number):
                cache.set_node(make_node(f"n{number}"))
            case ("no node", number):
                if cache.has_node(f"n{number}"):
                    cache.remove_node(f"n{number}")
            case ("count",):
                counts = matching.counts()
                assert counts.dtype == np.int64
                assert counts.tolist() == [sum(map(is_web, pods.values())) for pods in cache.nodes.pods]
            case ("gone", uid, _, _):
                cache.remove_pod(str(uid))
            case (app, uid, number, is_large):
                cache.set_pod(pod_on(f"n{number}", str(uid), str(app), TOO_LARGE_TO_LOG if is_large else ""))
