import pytest
from tests.builders import make_container, make_node, make_pod, make_pod_info
from tests.plugins.scenes import Scene, hint, sign

from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE, NODE_ADD
from bayplan.framework.status import SKIP, SUCCESS
from bayplan.plugins.node_ports import NodePorts

REJECTION = (1, ["node(s) didn't have free ports for the requested pod ports"])


@pytest.mark.parametrize(
    ("wanted", "taken", "conflict"),
    [
        (80, 80, True),
        (("", "", 80), ("0.0.0.0", "TCP", 80), True),
        (80, ("10.0.0.1", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), 80, True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (80, ("::", "TCP", 80), True),
        (80, 81, False),
        (80, ("", "UDP", 80), False),
        (("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), False),
        (("::", "TCP", 80), ("10.0.0.1", "TCP", 80), False),
        (80, 0, False),
    ],
)
def test_a_port_of_a_protocol_is_taken_once_per_address(wanted, taken, conflict):
    scene = Scene(make_node("a"), make_pod(node="a", host_ports=[8080, taken]), make_node("free"))
    found = scene.rejections(NodePorts(scene.cache.nodes), make_pod(host_ports=[443, wanted]))
    assert found == ({"a": REJECTION} if conflict else {})


def test_sidecars_hold_ports_and_ordinary_init_containers_do_not():
    scene = Scene(make_node("a"), make_pod(node="a", host_ports=[80]))
    plugin = NodePorts(scene.cache.nodes)
    sidecar = make_container("s", host_ports=[80], restart_policy="Always")
    assert scene.rejections(plugin, make_pod(init_containers=[sidecar])) == {"a": REJECTION}
    assert make_pod_info(init_containers=[make_container("i", host_ports=[80])]).host_ports == ()


def test_pods_without_host_ports_skip_the_filter():
    scene = Scene()
    plugin = NodePorts(scene.cache.nodes)
    assert plugin.pre_filter({}, make_pod_info(), scene.cache.nodes).status is SKIP
    assert plugin.pre_filter({}, make_pod_info(host_ports=[80]), scene.cache.nodes).status is SUCCESS


def test_the_wanted_ports_make_the_shape():
    plugin = NodePorts(Scene().cache.nodes)
    assert sign(plugin) == ()
    assert sign(plugin, host_ports=[80, 443]) == sign(plugin, host_ports=[443, ("0.0.0.0", "TCP", 80)])
    assert sign(plugin, host_ports=[80]) != sign(plugin, host_ports=[443])


def test_only_a_deleted_pod_that_held_a_wanted_port_brings_the_pod_back():
    plugin, pod = NodePorts(Scene().cache.nodes), make_pod(host_ports=[80])
    assert hint(plugin, ASSIGNED_POD_DELETE, pod, make_pod(node="a", host_ports=[80])) == "Queue"
    assert hint(plugin, ASSIGNED_POD_DELETE, pod, make_pod(node="a", host_ports=[81])) == "QueueSkip"
    assert hint(plugin, ASSIGNED_POD_DELETE, pod, make_pod(node="a")) == "QueueSkip"
    assert hint(plugin, NODE_ADD, pod, None, make_node()) == "Queue"
