import pytest
from tests.builders import make_pod
from tests.queue.scene import Scene, info

from bayplan.queue.queued_pod import SubQueue
from bayplan.scheduler.event_handlers import ForeignNominationEvents, foreign_nominations_selector


class Foreign:
    def __init__(self):
        self.scene = Scene()
        self.handler = ForeignNominationEvents(self.scene.queue)

    def pods(self, node):
        return [pod.name for pod in self.scene.queue.nominator.nominated_pods_for_node(node)]


@pytest.fixture
def foreign():
    return Foreign()


def theirs(node, **fields):
    return make_pod("theirs", uid="theirs", scheduler_name="default-scheduler", nominated=node, **fields)


def test_the_api_server_is_asked_for_nothing_but_others_nominations():
    assert foreign_nominations_selector({"b", "a"}) == (
        "spec.nodeName=,status.nominatedNodeName!=,spec.schedulerName!=a,spec.schedulerName!=b"
    )


def test_a_scheduler_name_with_a_selectors_own_characters_is_one_value():
    assert foreign_nominations_selector({"a,b=c\\d"}).endswith(",spec.schedulerName!=a\\,b\\=c\\\\d")


def test_a_nomination_of_another_schedulers_pod_counts_until_it_leaves_the_watch(foreign):
    foreign.handler.on_add(theirs("n1"))
    assert foreign.pods("n1") == ["theirs"]
    foreign.handler.on_update(theirs("n1"), theirs("n2"))
    assert (foreign.pods("n1"), foreign.pods("n2")) == ([], ["theirs"])
    foreign.handler.on_delete(theirs("n2"))
    assert foreign.pods("n2") == []
    assert foreign.scene.queue.uids() == set()


def test_room_that_is_spoken_for_no_more_wakes_pods_of_its_priority_or_lower(foreign):
    queue = foreign.scene.queue
    foreign.handler.on_add(theirs("n1", priority=5))
    for name, priority in (("lower", 5), ("higher", 6)):
        queue.add(info(name, priority=priority))
        queue.add_unschedulable(queue.pop(), rejector_plugins=frozenset({"Fit"}), error=False)
    foreign.handler.on_delete(theirs("n1", priority=5))
    assert foreign.scene.sub_queue("lower") is SubQueue.BACKOFF
    assert foreign.scene.sub_queue("higher") is SubQueue.UNSCHEDULABLE


def test_a_nominated_pod_nobody_can_read_is_not_counted(foreign, caplog):
    foreign.handler.on_add(theirs("n1"))
    foreign.handler.on_update(theirs("n1"), theirs("n1", cpu="x"))
    assert foreign.pods("n1") == []
    assert "nomination not counted" in caplog.text
