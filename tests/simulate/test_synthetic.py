from collections import Counter

from e2e.bench.pod_stream import POOLS, synthetic_pods

from bayplan.cache.resources import node_allocatable
from bayplan.simulate.synthetic import GPU, pod_shapes, synthetic_nodes


def test_nodes_come_in_the_proportions_of_their_pools():
    nodes = synthetic_nodes(100, POOLS)
    assert Counter(node.metadata.labels["pool"] for node in nodes) == {pool.name: pool.share for pool in POOLS}
    assert len({node.metadata.name for node in nodes}) == 100


def test_any_number_of_nodes_can_be_had():
    for count in range(20):
        assert len(synthetic_nodes(count, POOLS)) == count


def test_gpu_nodes_offer_gpus():
    gpus = {node.metadata.labels["pool"]: node_allocatable(node).get(GPU, 0) for node in synthetic_nodes(30, POOLS)}
    assert gpus == {"g8": 8, "g2": 2, "cpu": 0}


def test_shapes_differ_and_about_half_ask_for_gpus():
    shapes = pod_shapes(20, seed=1)
    assert len({(shape.milli_cpu, shape.mebibytes, shape.gpus, shape.priority) for shape in shapes}) == 20
    assert sum(shape.gpus > 0 for shape in shapes) == 10


def test_the_same_seed_gives_the_same_stream_in_new_objects():
    def stream(seed):
        return synthetic_pods(50, pod_shapes(20, seed), seed=seed, scheduler_name="s")

    first, again, other = stream(1), stream(1), stream(2)
    assert [pod.pod for pod in first] == [pod.pod for pod in again] != [pod.pod for pod in other]
    assert not {id(pod) for pod in first} & {id(pod) for pod in again}
    assert {pod.pod.spec.scheduler_name for pod in first} == {"s"}
