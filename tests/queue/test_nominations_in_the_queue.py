from tests.queue.scene import FIT, info


def test_a_nomination_follows_the_status_of_a_waiting_pod_and_dies_with_it(scene):
    for version, node in (("1", "n1"), ("2", "n2")):
        scene.queue.add(info("p", version=version, nominated=node))
        assert scene.queue.nominator.nominated_node("p") == node
    scene.queue.delete("p")
    assert scene.queue.nominator.nominated_node("p") is None


def test_a_status_that_comes_late_does_not_nominate_a_pod_in_flight(scene):
    scene.queue.add(info("p", nominated="n1"))
    scene.queue.pop()
    scene.queue.placed("p", "n1")
    scene.update(info("p", version="2", nominated="n1"))
    assert scene.queue.nominator.nominated_node("p") is None
    scene.queue.done("p")
    assert scene.queue.nominator.nominated_node("p") is None


def test_a_pod_handed_back_has_the_nomination_its_newest_status_names(scene):
    scene.queue.add(info("p"))
    queued = scene.queue.pop()
    newest = info("p", version="2", nominated="n1")
    scene.update(newest)
    scene.queue.add_unschedulable(queued, rejector_plugins=FIT, error=False)
    assert scene.queue.nominator.nominated_pods_for_node("n1") == [newest]
