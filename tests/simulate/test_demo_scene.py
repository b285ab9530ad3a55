import pytest

from bayplan.simulate.synthetic import URGENT_PRIORITY, Arrival, Departure, Scene

SIZES = [(1, 1, 1), (1, 30, 2), (2, 9, 3), (30, 160, 3), (12, 600, 5)]


@pytest.mark.parametrize(("nodes", "pods", "seed"), SIZES)
def test_every_pod_comes_once_and_departs_at_most_once_and_never_before_it_came(nodes, pods, seed):
    scene = Scene(nodes=nodes, pods=pods, seed=seed)
    came, gone = [], set()
    for stage in scene.stages:
        for event in stage.events:
            match event:
                case Arrival(pod):
                    came.append(pod)
                case Departure(pod):
                    assert pod in came
                    assert pod not in gone
                    gone.add(pod)
    assert came == list(range(pods))
    assert scene.events == len(came) + len(gone)


def test_the_same_seed_gives_the_same_scene_and_another_one_another():
    def told(seed):
        scene = Scene(nodes=10, pods=80, seed=seed)
        return scene.stages, [(pod.key, pod.requests.amounts, pod.priority) for pod in scene.stream()]

    assert told(4) == told(4)
    assert told(4) != told(5)


def test_pods_depart_while_the_cluster_fills_and_half_of_all_but_the_urgent_ones_at_the_end():
    scene = Scene(nodes=30, pods=160, seed=3)
    filling, urgent, ending = scene.stages
    departed = sum(isinstance(event, Departure) for event in filling.events)
    assert departed > 0
    assert len(ending.events) == (160 - len(urgent.events) - departed) // 2


def test_urgent_pods_come_last_and_are_of_a_priority_that_no_other_has():
    pods = Scene(nodes=30, pods=160, seed=3).stream()
    urgent = [pod.name.startswith("urgent-") for pod in pods]
    assert urgent == sorted(urgent)
    assert any(urgent)
    assert [pod.priority == URGENT_PRIORITY for pod in pods] == urgent
