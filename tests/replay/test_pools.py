from hypothesis import given
from hypothesis import strategies as st
from tests.reference.autoscaler import nodes_by_first_fit_decreasing
from tests.replay.traces import make_pool, make_template, make_trace

from bayplan.replay.pools import Pools
from bayplan.replay.trace import PodTemplate, StrictTaint, StrictToleration


def pools_of(*pools, templates):
    return Pools(make_trace([], pools=pools, templates=templates))


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(1, 16)), max_size=12))
def test_nodes_for_waiting_pods_are_those_of_first_fit_decreasing_pod_by_pod(pods):
    kinds = sorted(set(pods))
    templates = [PodTemplate(str(at), {"cpu": cpu, "memory": memory}) for at, (cpu, memory) in enumerate(kinds)]
    pools = pools_of(make_pool(cpu=8, memory=16), templates=templates)
    waiting = {str(at): pods.count(kind) for at, kind in enumerate(kinds)}
    expected = {0: nodes_by_first_fit_decreasing((8, 16), pods)} if pods else {}
    assert pools.nodes_for(waiting) == expected


def test_pods_of_daemon_sets_leave_less_room_on_every_node():
    pool = make_pool(cpu=4, daemons={"cpu": "500m"}, allocatable={"cpu": "3500m", "memory": "16Gi", "pods": 3})
    pools = pools_of(pool, templates=[make_template(cpu=1)])
    assert pools.pools[0].room["cpu"] == 3000
    assert pools.nodes_for({"web": 3}) == {0: 2}


def test_what_is_paid_for_is_the_capacity():
    assert pools_of(make_pool(cpu=4, allocatable={"cpu": 3}), templates=[]).pools[0].milli_cpu == 4000


def test_a_pod_gets_a_node_of_the_first_pool_that_takes_it():
    small, large = make_pool("small", cpu=2), make_pool("large", cpu=8)
    pools = pools_of(small, large, templates=[make_template("a", cpu=1), make_template("b", cpu=4)])
    assert pools.nodes_for({"a": 3, "b": 3}) == {0: 2, 1: 2}


def test_a_pod_gets_no_node_where_labels_or_taints_keep_it_away():
    tainted = make_pool("tainted", taints=[StrictTaint(key="gpu", effect="NoSchedule")])
    plain = make_pool("plain", labels={"zone": "a"})
    tolerant = make_template("tolerant", tolerations=[StrictToleration("gpu", "Exists")])
    choosy = make_template("choosy", node_selector={"zone": "a"})
    lost = make_template("lost", node_selector={"zone": "b"})
    pools = pools_of(tainted, plain, templates=[make_template(), tolerant, choosy, lost])
    assert pools.of_template == {"web": [1], "tolerant": [0, 1], "choosy": [1], "lost": []}
    assert pools.nodes_for({"lost": 2}) == {}


def test_a_pod_that_is_larger_than_any_node_gets_none():
    assert pools_of(make_pool(cpu=4), templates=[make_template(cpu=5)]).nodes_for({"web": 1}) == {}
