import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.builders import make_node, make_pod, make_pod_info
from tests.cache_checks import assert_adds_up

from bayplan.api.objects import ContainerStatus, ResourceRequirements
from bayplan.api.quantity import QuantityError
from bayplan.cache.cache import Cache, is_finished
from bayplan.cache.pod_info import PodInfo


def cache_with(*nodes, pods=()):
    cache = Cache()
    for node in nodes:
        cache.set_node(make_node(node))
    for pod in pods:
        cache.set_pod(pod)
    return cache


def cpu_on(cache, node):
    return int(cache.nodes.requested["cpu"][cache.nodes.row(node)])


def test_an_assumed_pod_counts_until_it_is_forgotten():
    cache = cache_with("a")
    cache.assume_pod(make_pod_info(uid="p", cpu="1"), "a")
    assert (cpu_on(cache, "a"), cache.is_assumed("p"), cache.node_of("p")) == (1000, True, "a")
    assert cache.confirmed_node("p") is None
    assert (cache.sizes().assumed_pods, [pod.uid for pod in cache.assumed_pods()]) == (1, ["p"])
    cache.forget_pod("p")
    assert (cpu_on(cache, "a"), cache.node_of("p"), cache.pod("p")) == (0, None, None)
    assert (cache.sizes().assumed_pods, cache.assumed_pods()) == (0, [])
    assert_adds_up(cache)


def test_a_confirmation_leaves_the_numbers_and_their_readers_alone():
    cache = cache_with("a")
    cache.assume_pod(make_pod_info(uid="p", cpu="1"), "a")
    before = cache.nodes.usage_changed.position
    confirmed = make_pod_info(uid="p", cpu="1", node="a")
    cache.set_pod(confirmed)
    assert cache.nodes.usage_changed.position == before
    assert cache.pod("p") is confirmed
    assert_adds_up(cache)


@pytest.mark.parametrize("cpu", ["1", "2"], ids=["the same", "more"])
def test_a_version_that_no_watch_has_shown_counts_and_leaves_the_assumption_one(cpu):
    cache = cache_with("a")
    cache.assume_pod(make_pod_info(uid="p", cpu="1"), "a")
    cache.set_pod(make_pod_info(uid="p", cpu=cpu, node="a"), shown=False)
    assert (cpu_on(cache, "a"), cache.is_assumed("p"), cache.sizes().assumed_pods) == (int(cpu) * 1000, True, 1)
    cache.set_pod(make_pod_info(uid="p", cpu=cpu, node="a"))
    assert (cpu_on(cache, "a"), cache.is_assumed("p"), cache.sizes().assumed_pods) == (int(cpu) * 1000, False, 0)
    cache.set_pod(make_pod_info(uid="p", cpu="1", node="a"), shown=False)
    assert (cpu_on(cache, "a"), cache.is_assumed("p"), cache.sizes().assumed_pods) == (1000, False, 0)
    assert_adds_up(cache)


def test_a_pod_that_the_watch_shows_on_another_node_is_counted_there_and_nowhere_else():
    """kube-scheduler ends itself here, as its cache is corrupted (upstream: cache.go UpdatePod)."""
    cache = cache_with("a", "b", pods=[make_pod_info(uid="p", cpu="1", node="a")])
    cache.set_pod(make_pod_info(uid="p", cpu="1", node="b"))
    assert (cpu_on(cache, "a"), cpu_on(cache, "b"), cache.confirmed_node("p")) == (0, 1000, "b")
    cache.remove_pod("p")
    assert (cpu_on(cache, "b"), cache.sizes().pods) == (0, 0)
    assert_adds_up(cache)


def test_a_pod_of_a_node_that_nobody_has_told_of_yet_is_counted_once_the_node_comes():
    cache = cache_with(pods=[make_pod_info(uid="p", cpu="1", node="late")])
    assert not cache.has_node("late")
    cache.set_node(make_node("late"))
    assert cpu_on(cache, "late") == 1000
    assert_adds_up(cache)


def test_new_labels_of_a_placed_pod_are_told_to_readers():
    cache = cache_with("a", pods=[make_pod_info(uid="p", node="a")])
    before = cache.nodes.usage_changed.position
    cache.set_pod(make_pod_info(uid="p", node="a", labels={"x": "y"}))
    assert cache.nodes.usage_changed.since(before).tolist() == [cache.nodes.row("a")]


def test_a_finished_pod_gives_its_room_back():
    cache = cache_with("a", pods=[make_pod_info(uid="p", cpu="1", node="a")])
    cache.set_pod(make_pod_info(uid="p", cpu="1", node="a", phase="Succeeded"))
    assert (cpu_on(cache, "a"), cache.node_of("p")) == (0, None)
    cache.set_pod(make_pod_info("q", uid="q", cpu="1", node="a", phase="Failed"))
    assert cpu_on(cache, "a") == 0


@pytest.mark.parametrize(
    ("phase", "finished"), [("Succeeded", True), ("Failed", True), ("Running", False), ("", False)]
)
def test_pods_are_finished_by_their_phase(phase, finished):
    assert is_finished(make_pod(phase=phase)) is finished


def test_a_pod_is_not_assumed_twice():
    cache = cache_with("a", pods=[make_pod_info(uid="p", node="a")])
    with pytest.raises(ValueError, match="default/p is already on a node"):
        cache.assume_pod(make_pod_info(uid="p"), "a")


def test_a_pod_version_that_cannot_be_read_leaves_the_last_one_counted():
    cache = cache_with("a", pods=[make_pod_info(uid="p", cpu="1", node="a")])
    with pytest.raises(QuantityError):
        cache.set_pod(make_pod_info(uid="p", cpu="many", node="a"))
    assert cpu_on(cache, "a") == 1000
    assert_adds_up(cache)


def test_a_pod_that_cannot_be_read_is_not_assumed():
    cache = cache_with("a")
    statuses = [ContainerStatus(name="c", resources=ResourceRequirements(requests={"cpu": "many"}))]
    with pytest.raises(QuantityError):
        cache.assume_pod(make_pod_info(uid="p", container_statuses=statuses), "a")
    assert_adds_up(cache)


def test_only_nodes_that_exist_are_there_to_bind_to():
    cache = cache_with("a", pods=[make_pod_info(uid="p", node="ghost"), make_pod_info("q", uid="q", node="a")])
    assert cache.has_node("a")
    assert not cache.has_node("ghost")
    assert not cache.has_node("never")
    cache.remove_node("a")
    cache.remove_node("a")
    cache.remove_node("ghost")
    cache.remove_node("never")
    assert not cache.has_node("a")
    assert (cache.sizes().nodes, cache.sizes().pods) == (0, 2)
    assert_adds_up(cache)


def test_pods_on_nodes_that_do_not_exist_take_no_row_and_leave_nothing_behind():
    cache = cache_with("a")
    before = (cache.nodes.capacity, cache.nodes.layout, cache.nodes.usage_changed.position)
    for i in range(1000):
        cache.set_pod(make_pod_info(uid=f"p{i}", node=f"made-up-{i}"))
    assert (cache.nodes.capacity, cache.nodes.layout, cache.nodes.usage_changed.position) == before
    assert_adds_up(cache)
    for i in range(1000):
        cache.remove_pod(f"p{i}")
    assert (cache.without_node, cache.sizes().pods) == ({}, 0)


def test_pods_that_were_there_before_their_node_count_once_it_comes_and_again_when_it_comes_back():
    cache = cache_with("a", pods=[make_pod_info(uid=uid, node="late", cpu="1") for uid in ("p", "q", "r")])
    cache.set_pod(make_pod_info(uid="q", node="late", cpu="1", labels={"now": "another"}))
    for _ in range(2):
        cache.set_node(make_node("late"))
        assert cpu_on(cache, "late") == 3000
        assert_adds_up(cache)
        cache.remove_node("late")
        assert_adds_up(cache)
    cache.remove_pod("r")
    cache.set_pod(make_pod_info(uid="p", node="a", cpu="1"))
    cache.set_node(make_node("late"))
    assert cpu_on(cache, "late") == 1000
    assert cache.nodes.pods[cache.nodes.row("late")]["q"].pod.metadata.labels == {"now": "another"}


NODES = [f"n{i}" for i in range(80)]
REQUESTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "example.com/gpu"]),
    st.sampled_from(["0", "1", "250m", "1.5", "64Ti", "9e18", "1e100", 2]),
)


class CacheMachine(RuleBasedStateMachine):
    """Any order of calls the loop and the watches may make; the truth is two dicts."""

    def __init__(self):
        super().__init__()
        self.cache = Cache()
        self.nodes = {}
        self.placed = {}
        self.assumed = set()
        self.generation = 0

    def uid(self, number):
        return f"p{number}-{self.generation if number == 0 else 0}"

    def make(self, number, node, requests, phase=None):
        return make_pod_info(f"p{number}", uid=self.uid(number), node=node, requests=requests, phase=phase)

    @initialize(count=st.sampled_from([0, 3, 63, 64, 70]))
    def some_nodes(self, count):
        for name in NODES[:count]:
            self.set_node(name, "4", 110)

    @rule(
        name=st.sampled_from(NODES),
        cpu=st.sampled_from(["0", "4", "9e18"]),
        pods=st.sampled_from([0, 110]),
        gpus=st.sampled_from([0, 8]),
    )
    def set_node(self, name, cpu, pods, gpus=0):
        node = make_node(name, cpu=cpu, pods=pods, allocatable={"example.com/gpu": gpus})
        self.cache.set_node(node)
        self.nodes[name] = node

    @rule(name=st.sampled_from(NODES))
    def remove_node(self, name):
        self.cache.remove_node(name)
        self.nodes.pop(name, None)

    @rule(number=st.integers(0, 6), name=st.sampled_from(NODES[:8]), requests=REQUESTS)
    def assume(self, number, name, requests):
        pod = self.make(number, "", requests)
        if pod.uid in self.placed:
            with pytest.raises(ValueError, match="already on a node"):
                self.cache.assume_pod(pod, name)
            return
        self.cache.assume_pod(pod, name)
        self.placed[pod.uid] = (pod, name)
        self.assumed.add(pod.uid)

    @rule(
        number=st.integers(0, 6),
        name=st.sampled_from([*NODES[:8], "ghost"]),
        requests=REQUESTS,
        finished=st.booleans(),
    )
    def set_pod(self, number, name, requests, finished):
        pod = self.make(number, name, requests, phase="Failed" if finished else None)
        self.assumed.discard(pod.uid)
        if finished:
            self.placed.pop(pod.uid, None)
        else:
            self.placed[pod.uid] = (pod, name)
        for _ in range(2):
            self.cache.set_pod(pod)

    @precondition(lambda self: self.placed)
    @rule(data=st.data())
    def confirm(self, data):
        uid = data.draw(st.sampled_from(sorted(self.placed)))
        pod, name = self.placed[uid]
        spec = msgspec.structs.replace(pod.pod.spec, node_name=name)
        shown = PodInfo(msgspec.structs.replace(pod.pod, spec=spec))
        self.cache.set_pod(shown)
        self.placed[uid] = (shown, name)
        self.assumed.discard(uid)

    @rule(number=st.integers(0, 6))
    def forget(self, number):
        uid = self.uid(number)
        self.cache.forget_pod(uid)
        if uid in self.assumed:
            self.assumed.discard(uid)
            del self.placed[uid]

    @rule(number=st.integers(0, 6))
    def remove(self, number):
        uid = self.uid(number)
        self.cache.remove_pod(uid)
        self.placed.pop(uid, None)
        self.assumed.discard(uid)

    @rule()
    def recreate(self):
        self.generation += 1

    @invariant()
    def equals_a_cache_built_from_scratch(self):
        assert_adds_up(self.cache)
        fresh = Cache()
        for node in self.nodes.values():
            fresh.set_node(node)
        for pod, name in self.placed.values():
            fresh.assume_pod(pod, name)
        ours, theirs = self.cache.nodes, fresh.nodes
        assert {ours.names[row] for row in ours.rows()} == set(self.nodes)
        assert ours.node_count == len(self.nodes)
        sizes = self.cache.sizes()
        assert (sizes.pods, sizes.assumed_pods) == (len(self.placed), len(self.assumed))
        assert {pod.uid for pod in self.cache.assumed_pods()} == self.assumed
        for name in self.nodes:
            assert columns_of(ours, name) == columns_of(theirs, name)
        assert self.cache.without_node == fresh.without_node
        for uid, (pod, name) in self.placed.items():
            assert (self.cache.pod(uid), self.cache.node_of(uid)) == (pod, name)
            assert self.cache.is_assumed(uid) == (uid in self.assumed)
        for name in NODES:
            assert self.cache.has_node(name) == (name in self.nodes)


def columns_of(table, name):
    row = table.row(name)
    return (
        bool(table.exists[row]),
        {resource: int(column[row]) for resource, column in table.requested.items() if column[row]},
        {resource: int(column[row]) for resource, column in table.allocatable.items() if column[row]},
        *(int(c[row]) for c in (table.non_zero_cpu, table.non_zero_memory, table.pod_count, table.allowed_pods)),
        set(table.pods[row]),
    )


CacheMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=40)
TestCacheMachine = CacheMachine.TestCase
