import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import make_node, make_pod_info
from tests.cache_checks import assert_adds_up

from bayplan.api.objects import ContainerStatus, ResourceRequirements
from bayplan.api.quantity import MAX_AMOUNT, TOO_MUCH, QuantityError
from bayplan.cache.cache import Cache
from bayplan.cache.change_log import KEPT_POD_BYTES, RowFollower
from bayplan.cache.node_table import NodeTable

GPU = "example.com/gpu"


@pytest.fixture
def table():
    return NodeTable()


def names(table):
    return [table.names[row] for row in table.rows()]


def test_a_node_writes_its_amounts_into_its_row(table):
    row = table.set_node(make_node("a", cpu="1500m", memory="2Gi", pods=7, allocatable={GPU: 3}))
    assert (table.row("a"), table.names[row], len(table)) == (row, "a", 1)
    assert table.allocatable["cpu"][row] == 1500
    assert table.allocatable["memory"][row] == 2 * 2**30
    assert table.allocatable[GPU][row] == 3
    assert table.allowed_pods[row] == 7


def test_a_node_that_cannot_be_read_changes_nothing(table):
    table.set_node(make_node("a", cpu="1"))
    before = table.objects_changed.position
    with pytest.raises(QuantityError):
        table.set_node(make_node("a", cpu="many"))
    with pytest.raises(QuantityError):
        table.set_node(make_node("b", cpu="many"))
    assert table.allocatable["cpu"][table.row("a")] == 1000
    assert table.row("b") is None
    assert table.objects_changed.position == before


def test_the_row_of_a_node_that_went_is_free_and_its_pods_are_handed_back(table):
    row, reader = table.set_node(make_node("a")), SlowReader()
    table.pods_changed.readers.add(reader)
    pods = [make_pod_info(name, uid=name, cpu=cpu) for name, cpu in (("p", "1"), ("q", "9e18"))]
    for pod in pods:
        table.add_pod(pod, row)
    read_to = table.pods_changed.position
    assert table.drop_node("a") == {"p": pods[0], "q": pods[1]}
    assert table.pods_changed.since(read_to) == [(row, pods[0], None), (row, pods[1], None)]
    assert (names(table), table.row("a"), table.clamped_rows) == ([], None, set())
    assert table.set_node(make_node("b")) == row
    assert (table.requested["cpu"][row], table.pod_count[row], table.pods[row]) == (0, 0, {})


def test_pods_that_come_with_their_node_count_as_if_they_came_one_by_one(table):
    row, other = table.set_node(make_node("a")), table.set_node(make_node("b"))
    pods = {uid: make_pod_info(uid, uid=uid, cpu=cpu) for uid, cpu in (("p", "1"), ("q", "9e18"), ("r", "9e18"))}
    table.add_pods(pods, row)
    for pod in pods.values():
        table.add_pod(pod, other)
    for column in (table.requested["cpu"], table.non_zero_cpu, table.non_zero_memory, table.pod_count):
        assert column[row] == column[other] != 0
    assert table.clamped_rows == {row, other}


def test_more_nodes_than_rows_move_every_column_and_tell_readers_to_start_over(table):
    follower = RowFollower(table)
    first = table.set_node(make_node("first", allocatable={GPU: 2}))
    table.add_pod(make_pod_info("p", cpu="2", requests={GPU: 1}), first)
    follower.follow()
    for i in range(200):
        table.set_node(make_node(f"n{i}", cpu="3"))
    assert len(table) == 201
    assert table.capacity >= 201
    assert len(set(map(table.row, names(table)))) == 201
    assert table.requested[GPU][first] == 1
    assert table.allocatable["cpu"][table.row("n199")] == 3000
    for column in (*table.requested.values(), *table.allocatable.values(), table.non_zero_cpu, table.pod_count):
        assert column.shape == (table.capacity,)
    assert follower.follow().everything


def test_a_pod_that_cannot_be_read_changes_nothing(table):
    row = table.set_node(make_node("a"))
    statuses = [ContainerStatus(name="c", resources=ResourceRequirements(requests={"cpu": "many"}))]
    with pytest.raises(QuantityError):
        table.add_pod(make_pod_info(container_statuses=statuses), row)
    assert (table.pods[row], table.pod_count[row]) == ({}, 0)


def test_absurd_requests_never_wrap_and_leave_no_trace(table):
    row = table.set_node(make_node("a"))
    small = make_pod_info("small", cpu="1", memory="1Gi")
    table.add_pod(small, row)
    absurd = [make_pod_info(f"p{i}", cpu="9e18", memory="9e18") for i in range(300)]
    for pod in absurd:
        table.add_pod(pod, row)
    assert table.requested["cpu"][row] == TOO_MUCH > MAX_AMOUNT
    assert table.non_zero_memory[row] == TOO_MUCH
    for pod in absurd:
        table.remove_pod(pod, row)
    assert table.requested["cpu"][row] == 1000
    assert table.non_zero_memory[row] == 2**30


def test_a_reader_is_told_apart_what_pods_and_what_nodes_changed(table):
    a, b = table.set_node(make_node("a")), table.set_node(make_node("b"))
    rows = RowFollower(table)
    assert rows.follow().everything
    table.add_pod(make_pod_info(), a)
    table.set_node(make_node("b", labels={"x": "y"}))
    change = rows.follow()
    assert not change.everything
    assert (change.usage.tolist(), change.objects.tolist()) == ([a, b], [b])
    change = rows.follow()
    assert (change.everything, len(change.usage), len(change.objects)) == (False, 0, 0)


def test_a_reader_that_fell_behind_one_log_starts_over(table):
    row = table.set_node(make_node("a"))
    rows = RowFollower(table)
    rows.follow()
    pod = make_pod_info()
    for _ in range(5000):
        table.add_pod(pod, row)
        table.remove_pod(pod, row)
    assert rows.follow().everything


def test_whether_all_nodes_have_a_resource_follows_the_nodes(table):
    assert not table.all_have("cpu")
    table.set_node(make_node("a"))
    assert table.all_have("cpu")
    table.set_node(make_node("b", cpu="0"))
    assert not table.all_have("cpu")
    table.drop_node("b")
    assert table.all_have("cpu")
    assert np.array_equal(table.rows(), [table.row("a")])


def cache_of(*nodes, **pods_by_node):
    """A cache with nodes, and on each one pod by its requests."""
    cache = Cache()
    for node in nodes:
        cache.set_node(node)
    for name, requests in pods_by_node.items():
        cache.set_pod(make_pod_info(name, uid=name, node=name, requests=requests))
    assert_adds_up(cache)
    return cache


def test_what_no_node_has_costs_no_memory_however_many_names_pods_make_up():
    cache = cache_of(make_node("a", allocatable={GPU: 1}), a={f"made-up.io/{i}": 1 for i in range(10_000)})
    assert cache.nodes.allocatable.keys() == {"cpu", "memory", "pods", GPU}
    assert cache.nodes.requested.keys() == {"cpu", "memory", GPU}
    cache.remove_pod("a")
    assert_adds_up(cache)


def test_pods_that_were_first_are_counted_once_a_node_has_what_they_ask_for():
    cache = cache_of(make_node("a"), make_node("b"), a={GPU: 2}, b={GPU: "9e18"}, late={GPU: 3})
    table = cache.nodes
    assert table.requested.get(GPU) is None
    cache.set_node(make_node("b", allocatable={GPU: 8}))
    cache.set_node(make_node("late"))
    assert_adds_up(cache)
    counted = [int(table.requested[GPU][table.row(name)]) for name in ("a", "b", "late")]
    assert counted == [2, TOO_MUCH, 3]
    cache.remove_pod("a")
    cache.remove_pod("late")
    assert_adds_up(cache)
    assert np.count_nonzero(table.requested[GPU]) == 1


@pytest.mark.parametrize("leave", [lambda cache: cache.remove_node("b"), lambda cache: cache.set_node(make_node("b"))])
def test_the_column_of_a_resource_goes_with_the_last_node_that_has_it(leave):
    having = make_node("b", allocatable={GPU: 8})
    cache = cache_of(make_node("a", allocatable={GPU: 1}), having, b={GPU: 2})
    leave(cache)
    assert GPU in cache.nodes.requested
    cache.set_node(make_node("a", allocatable={GPU: 0}))
    assert_adds_up(cache)
    assert GPU not in {*cache.nodes.requested, *cache.nodes.allocatable}
    cache.set_node(having)
    assert_adds_up(cache)
    assert cache.nodes.requested[GPU].sum() == 2


def test_names_that_come_and_go_with_nodes_leave_nothing_behind():
    cache = cache_of(make_node("a"))
    for i in range(100):
        cache.set_node(make_node("b", allocatable={f"example.com/{i}": 1}))
    assert len(cache.nodes.allocatable) == 4
    assert_adds_up(cache)


class SlowReader:
    """Reads nothing of the log, and notes what it is told beside it."""

    read_to = 1

    def __init__(self):
        self.taken = []

    def take(self, change):
        self.taken.append(change)


def test_the_log_of_pods_is_bounded_by_their_size_not_by_their_number(table):
    row, reader = table.set_node(make_node("a")), SlowReader()
    table.pods_changed.readers.add(reader)
    plain, large, huge = (
        make_pod_info(requests={f"made-up.io/{i}": 1 for i in range(count)}) for count in (1, 1000, 10_000)
    )

    def logged(*pods):
        for pod in pods:
            table.add_pod(pod, row)
            table.remove_pod(pod, row)
        return table.pods_changed.size

    assert logged(plain) == 2 * plain.size
    assert max(logged(large) for _ in range(1000)) in range(KEPT_POD_BYTES, 2 * KEPT_POD_BYTES + 1)
    position = table.pods_changed.position
    logged(huge, plain)
    assert table.pods_changed.since(position) == [(row, None, plain), (row, plain, None)]
    assert reader.taken == [(row, None, huge), (row, huge, None)]


STAYING = st.tuples(st.sampled_from(["DaemonSet/d", "Node/n", "ReplicaSet/r", None]), st.sampled_from([0, 1, "1e100"]))


@given(st.lists(st.tuples(st.integers(0, 3), STAYING), max_size=12))
def test_what_stays_on_a_node_is_counted_as_a_scan_of_its_pods_would(changes):
    cache = Cache()
    for name in ("a", "b"):
        cache.set_node(make_node(name, cpu=4))
    for uid, (owner, cpu) in changes:
        if uid == 3 and owner is None:
            cache.remove_node("a")
            cache.set_node(make_node("a", cpu=4, allocatable={"gpu": 1}))
        cache.set_pod(make_pod_info(uid=str(uid), node="ab"[uid % 2], owner=owner, requests={"cpu": cpu, "gpu": 1}))
        if uid == 2 and cpu == 0:
            cache.remove_pod("2")
    table = cache.nodes
    for row in table.rows().tolist():
        pods = table.pods[row].values()
        stays = [pod for pod in pods if (owners := pod.pod.metadata.owner_references) and owners[0].kind[0] in "DN"]
        assert bool(table.in_use()[row]) == (len(stays) < len(pods))
        for name in table.requested:
            total = sum(pod.placed.amounts.get(name, 0) for pod in stays)
            assert int(table.staying[name][row]) == min(total, TOO_MUCH)
