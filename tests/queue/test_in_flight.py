from tests.queue.scene import info

from bayplan.framework.cluster_event import NODE_ADD, WILDCARD
from bayplan.queue.in_flight import InFlightPods
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.queue.queueing_hints import ObservedEvent


def start(pods, name):
    pods.start(QueuedPodInfo(info(name), timestamp=0.0, sequence=0))


def happen(pods, what, only_uid=None):
    pods.record(ObservedEvent(NODE_ADD, None, what, {"bayplan": {"Plugin": (None,)}}, only_uid=only_uid))
    pods.validate()


def missed(pods, name):
    return [event.new for event in pods.missed(pods.get(name))]


def test_a_pod_misses_what_happened_since_its_pop():
    pods = InFlightPods()
    start(pods, "a")
    happen(pods, 1)
    start(pods, "b")
    happen(pods, 2)
    assert missed(pods, "a") == [1, 2]
    assert missed(pods, "b") == [2]


def test_an_event_about_one_pod_concerns_nobody_else():
    pods = InFlightPods()
    start(pods, "a")
    start(pods, "b")
    happen(pods, 1, only_uid="b")
    assert missed(pods, "a") == []
    assert missed(pods, "b") == [1]


def test_events_are_kept_only_while_a_pod_in_flight_needs_them():
    pods = InFlightPods()
    happen(pods, "nobody in flight")
    assert pods.event_count == 0
    start(pods, "a")
    happen(pods, 1)
    start(pods, "b")
    happen(pods, 2)
    pods.done("a")
    pods.validate()
    assert pods.event_count == 1
    assert missed(pods, "b") == [2]
    pods.done("b")
    pods.validate()
    assert pods.event_count == 0


def test_a_younger_pod_that_ends_leaves_the_events_of_the_older():
    pods = InFlightPods()
    start(pods, "a")
    happen(pods, 1)
    start(pods, "b")
    happen(pods, 2)
    pods.done("b")
    pods.done("unknown")
    pods.validate()
    assert missed(pods, "a") == [1, 2]


def test_counting_goes_on_after_everything_was_dropped():
    pods = InFlightPods()
    for round_ in range(3):
        start(pods, "a")
        happen(pods, round_)
        assert missed(pods, "a") == [round_]
        pods.done("a")


def test_an_event_nobody_registered_for_is_not_kept_but_a_wildcard_is():
    pods = InFlightPods()
    start(pods, "a")
    pods.record(ObservedEvent(NODE_ADD, None, "nobody cares", {}))
    pods.record(ObservedEvent(WILDCARD, None, "everybody", {}))
    assert missed(pods, "a") == ["everybody"]
