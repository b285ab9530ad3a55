from tests.queue.scene import FIT, info

from bayplan.queue.queued_pod import SubQueue


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


def test_a_nomination_that_ends_with_the_attempt_ends_for_good_whatever_the_status_says_until_then(scene):
    scene.queue.add(info("p", nominated="n1"))
    for ends_nomination in (True, False, True):
        queued = scene.queue.pop()
        scene.fail(queued, ends_nomination=ends_nomination)
        assert scene.queue.nominator.nominated_node("p") is None
        scene.bring_back()
    # A newer version speaks for itself: somebody may have nominated the pod again.
    scene.update(info("p", version="2", nominated="n1"))
    assert scene.queue.nominator.nominated_node("p") == "n1"


def test_a_nomination_withdrawn_while_the_pod_is_in_flight_does_not_come_back_with_it(scene):
    scene.queue.add(info("p", nominated="n1"))
    queued = scene.queue.pop()
    scene.queue.withdraw("p", wake=True)
    scene.fail(queued)
    assert scene.queue.nominator.nominated_node("p") is None


def test_the_end_of_a_nomination_wakes_others_once(scene):
    scene.queue.add(info("p", priority=1, nominated="n1"))
    nominee = scene.queue.pop()
    scene.reject("other")
    for expected in (SubQueue.BACKOFF, SubQueue.UNSCHEDULABLE):
        scene.fail(nominee, ends_nomination=True)
        assert scene.sub_queue("other") is expected
        scene.bring_back()
        nominee = scene.queue.pop()
        scene.fail(scene.queue.pop())
