from hypothesis import given
from hypothesis import strategies as st
from tests.builders import make_node, make_pod_info

from bayplan.cache.cache import Cache
from bayplan.cache.packing import Packing

GIB = 1024**3
RESOURCES = ("cpu", "memory")


class Scene:
    """Nodes by name with their pods; what is said of their packing."""

    def __init__(self):
        self.cache = Cache()

    def node(self, name, *pods, cpu="4", memory="16Gi", **fields):
        """A node with pods of (cpu, memory)."""
        self.cache.set_node(make_node(name, cpu=cpu, memory=memory, **fields))
        for number, (pod_cpu, pod_memory) in enumerate(pods):
            self.cache.set_pod(make_pod_info(f"{name}-{number}", node=name, cpu=pod_cpu, memory=pod_memory))
        return self

    @property
    def packing(self):
        return Packing(self.cache.nodes, RESOURCES)


def test_memory_is_stranded_where_cpu_is_full():
    scene = Scene().node("full", ("4", "4Gi")).node("open", ("1", "4Gi"))
    assert scene.packing.stranded() == {"cpu": 0, "memory": 12 * GIB}


def test_a_resource_is_full_where_less_is_free_than_an_average_pod_requests():
    # On average 1.5 cores: of what is free on `nearly` no pod can make use, and none of its memory either.
    scene = Scene().node("nearly", ("1500m", "1Gi"), ("1500m", "1Gi"))
    assert scene.packing.stranded() == {"cpu": 0, "memory": 14 * GIB}


def test_a_node_without_room_for_another_pod_strands_both():
    scene = Scene().node("many", ("1", "1Gi"), pods="1")
    assert scene.packing.stranded() == {"cpu": 3000, "memory": 15 * GIB}


def test_a_cordoned_node_strands_nothing_and_offers_nothing():
    scene = Scene().node("full", ("4", "4Gi"), unschedulable=True)
    assert scene.packing.stranded() == {"cpu": 0, "memory": 0}
    assert scene.packing.largest() == {"cpu": 0, "memory": 0}


def test_the_largest_pod_fits_on_one_node_that_takes_another_pod():
    scene = Scene().node("a", ("1", "8Gi")).node("b", ("3", "1Gi")).node("c", cpu="64", pods="0")
    assert scene.packing.largest() == {"cpu": 3000, "memory": 15 * GIB}


def test_the_lower_bound_takes_the_largest_nodes_of_the_scarcest_resource():
    scene = Scene().node("a", ("3", "1Gi")).node("b", ("3", "1Gi")).node("c", ("3", "1Gi"))
    assert scene.packing.lower_bound() == 3
    assert Scene().node("a", ("1", "1Gi")).node("b", ("1", "1Gi")).packing.lower_bound() == 1


def test_nodes_that_the_others_have_room_for_could_be_emptied():
    scene = Scene().node("a", ("1", "1Gi")).node("b", ("1", "1Gi")).node("c", ("1", "1Gi")).node("idle")
    assert scene.packing.emptiable() == 2
    assert scene.node("d", ("4", "1Gi")).packing.emptiable() == 2


def test_nothing_moves_to_a_cordoned_node():
    scene = Scene().node("a", ("1", "1Gi")).node("b", ("2", "1Gi"), unschedulable=True)
    assert scene.packing.emptiable() == 0


def test_absurd_amounts_do_not_wrap():
    scene = Scene().node("a", ("1e15", "1Gi")).node("b", ("1e15", "1Gi"), cpu="1e15")
    assert scene.packing.lower_bound() == 2
    assert min(scene.packing.stranded().values()) >= 0


amounts = st.tuples(st.integers(0, 40), st.integers(0, 40))


@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60), st.lists(amounts, max_size=5)), min_size=1, max_size=8)
)
def test_what_is_said_agrees_with_a_count_node_by_node(nodes):
    scene = Scene()
    for number, (cpu, memory, pods) in enumerate(nodes):
        scene.node(f"n{number}", *((f"{c}m", m) for c, m in pods), cpu=f"{cpu}m", memory=memory)
    packing = scene.packing
    taken = [[sum(c for c, _ in pods), sum(m for _, m in pods), len(pods)] for _, _, pods in nodes]
    offered = [[cpu, memory, 110] for cpu, memory, _ in nodes]
    free = [[max(o - t, 0) for o, t in zip(*pair, strict=True)] for pair in zip(offered, taken, strict=True)]
    count = max(sum(row[2] for row in taken), 1)
    average = [sum(row[0] for row in taken) / count, sum(row[1] for row in taken) / count, 1]
    full = [[left < wanted for left, wanted in zip(row, average, strict=True)] for row in free]
    for at, name in enumerate(RESOURCES):
        others = [other for other in range(3) if other != at]
        stranded = sum(row[at] for row, is_full in zip(free, full, strict=True) if any(is_full[o] for o in others))
        assert packing.stranded()[name] == stranded
        assert packing.largest()[name] == max(row[at] for row in free)
    assert packing.emptiable() <= sum(1 for row in taken if row[2])
    assert packing.lower_bound() <= len(nodes)


def test_pods_that_stay_on_their_node_are_no_reason_for_another_node_and_need_not_move():
    scene = Scene().node("a", ("2", "1Gi")).node("b", ("1", "1Gi")).node("c")
    assert (scene.packing.lower_bound(), scene.packing.emptiable()) == (1, 1)
    for name in ("a", "b", "c"):
        scene.cache.set_pod(make_pod_info(f"cni-{name}", node=name, owner="DaemonSet/cni", cpu="1", memory="1Gi"))
    assert (scene.packing.lower_bound(), scene.packing.emptiable()) == (1, 1)
    scene.cache.set_pod(make_pod_info("proxy-a", node="a", owner="Node/a", cpu="1", memory="1Gi"))
    assert (scene.packing.fewest_for("cpu"), scene.packing.emptiable()) == (1, 0)


def test_devices_that_pods_have_in_place_of_an_extended_resource_need_no_nodes_that_offer_it():
    scene = Scene().node("plugin", ("1", "1Gi"), allocatable={"example.com/gpu": 8}).node("devices").node("idle")
    for number in range(9):
        pod = make_pod_info(f"gpu-{number}", node="devices", requests={"example.com/gpu": 1})
        scene.cache.set_pod(pod)
    assert scene.packing.fewest_for("example.com/gpu") == 0
