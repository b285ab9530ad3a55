from tests.builders import make_node, make_pod_info

from bayplan.api.quantity import MAX_AMOUNT
from bayplan.cache.node_table import NodeTable
from bayplan.cache.packing import allocation_summary

GPU = "example.com/gpu"


def test_an_empty_cluster_has_nothing_to_allocate():
    summary = allocation_summary(NodeTable())
    assert (summary.nodes, summary.nodes_in_use, summary.allocatable, summary.requested) == (0, 0, {}, {"pods": 0})


def test_nodes_with_a_pod_are_in_use_and_nodes_that_are_gone_count_for_nothing():
    table = NodeTable()
    table.set_node(make_node("used", cpu="4", memory="8", pods=10, allocatable={GPU: 2}))
    table.set_node(make_node("idle", cpu="1", memory="1", pods=1))
    table.set_node(make_node("free", cpu="2", memory="4", pods=5))
    table.set_node(make_node("gone", cpu="7"))
    for name, node in (("p", "used"), ("q", "used"), ("r", "gone")):
        table.add_pod(make_pod_info(name, cpu="1500m", memory="2", requests={GPU: 1}), table.row(node))
    table.add_pod(make_pod_info("asks for nothing"), table.row("idle"))
    table.drop_node("gone")
    summary = allocation_summary(table)
    assert (summary.nodes, summary.nodes_in_use) == (3, 2)
    assert summary.requested == {"cpu": 3000, "memory": 4, GPU: 2, "pods": 3}
    assert summary.allocatable == {"cpu": 7000, "memory": 13, GPU: 2, "pods": 16}
    assert summary.allocatable_in_use == {"cpu": 5000, "memory": 9, GPU: 2, "pods": 11}


def test_a_node_with_nothing_but_pods_of_daemon_sets_and_static_pods_is_not_in_use():
    table = NodeTable()
    for name in ("idle", "used"):
        table.set_node(make_node(name, cpu="4", memory="8"))
        for owner in ("DaemonSet/cni", f"Node/{name}"):
            table.add_pod(make_pod_info(owner, owner=owner, cpu="500m"), table.row(name))
    table.add_pod(make_pod_info("web", owner="ReplicaSet/web", cpu="1"), table.row("used"))
    summary = allocation_summary(table)
    assert (summary.nodes, summary.nodes_in_use) == (2, 1)
    assert (summary.requested["cpu"], summary.requested_in_use["cpu"]) == (3000, 2000)
    assert (summary.requested_in_use["pods"], summary.allocatable_in_use["cpu"]) == (3, 4000)


def test_totals_of_absurd_nodes_are_exact():
    table = NodeTable()
    for i in range(200):
        table.set_node(make_node(f"n{i}", memory="1e100"))
    table.set_node(make_node("sane", memory="7"))
    assert allocation_summary(table).allocatable["memory"] == 200 * MAX_AMOUNT + 7
