import pytest
from tests.builders import make_pod_info
from tests.queue.scene import info

from bayplan.cache.change_log import KeyFollower
from bayplan.framework.nominator import Nominator


@pytest.fixture
def nominator():
    return Nominator()


def names(nominator, node):
    return [pod.name for pod in nominator.nominated_pods_for_node(node)]


def test_nominated_pods_come_in_order_of_nomination(nominator):
    nominator.add(info("b"), "n1")
    nominator.add(info("a"), "n1")
    nominator.add(info("c"), "n2")
    assert names(nominator, "n1") == ["b", "a"]
    assert names(nominator, "n3") == []
    assert nominator.nominated_node("c") == "n2"


def test_the_node_nominated_here_is_ahead_of_the_one_the_status_names(nominator):
    named, unnamed = info("a", nominated="n1"), info("b")
    assert nominator.nominated_or_named_node(named) == "n1"
    assert nominator.nominated_or_named_node(unnamed) == ""
    nominator.add(named, "n2")
    nominator.add(unnamed, "n3")
    assert nominator.nominated_or_named_node(named) == "n2"
    assert nominator.nominated_or_named_node(unnamed) == "n3"


def test_an_update_that_knows_no_nomination_keeps_ours(nominator):
    old, new = info("a"), info("a", version="2")
    nominator.add(old, "n1")
    nominator.add(info("b"), "n1")
    nominator.update(old, new)
    assert nominator.nominated_pods_for_node("n1")[0] is new
    assert names(nominator, "n1") == ["a", "b"]


def test_an_update_that_clears_the_status_ends_the_nomination(nominator):
    nominator.add(info("a"), "n1")
    nominator.update(info("a", nominated="n1"), info("a"))
    assert names(nominator, "n1") == []


def test_the_caller_may_keep_and_change_the_list(nominator):
    nominator.add(info("a"), "n1")
    nominator.nominated_pods_for_node("n1").clear()
    assert names(nominator, "n1") == ["a"]


def test_a_nomination_names_a_node():
    with pytest.raises(ValueError, match="default/a"):
        Nominator().add(info("a"), "")


def test_pods_see_nominations_of_their_own_priority_and_above(nominator):
    assert nominator.lowest_priority_from(0) is None
    low, high = (make_pod_info(uid=name, priority=priority) for name, priority in (("low", 5), ("high", 9)))
    nominator.add(low, "n1")
    nominator.add(high, "n2")
    assert [nominator.lowest_priority_from(priority) for priority in (4, 5, 6, 9, 10)] == [5, 5, 9, 9, None]
    nominator.update(low, make_pod_info(uid="low", priority=7))
    assert nominator.lowest_priority_from(0) == 7
    nominator.delete("low")
    assert nominator.lowest_priority_from(0) == 9
    assert list(nominator.nodes()) == ["n2"]


def test_readers_are_told_which_nodes_changed(nominator):
    pod = make_pod_info(uid="a")
    nominator.add(pod, "n1")
    reader, late = (KeyFollower(nominator.changes, nominator.nodes()) for _ in range(2))
    assert set(reader.follow(())) == {"n1"}
    assert set(reader.follow(())) == set()
    nominator.add(pod, "n2")
    assert set(reader.follow(())) == {"n1", "n2"}
    late.follow(())
    for _ in range(10_000):
        nominator.refresh(pod)
    assert set(late.follow(["n0"])) == {"n0", "n2"}


def test_the_oldest_nomination_that_lasts_has_its_age():
    now = 100.0
    nominator = Nominator(lambda: now)
    assert (nominator.count(), nominator.oldest_age()) == (0, 0.0)
    nominator.add(info("a"), "n1")
    now = 130.0
    nominator.add(info("b"), "n1")
    now = 140.0
    assert (nominator.count(), nominator.oldest_age()) == (2, 40.0)
    nominator.delete("a")
    assert (nominator.count(), nominator.oldest_age()) == (1, 10.0)
    nominator.add(info("b"), "n2")
    assert nominator.oldest_age() == 0.0


def test_a_pod_does_not_count_besides_itself():
    nominator = Nominator()
    for name, priority in (("one", 5), ("two", 5), ("three", 9)):
        nominator.add(make_pod_info(name, uid=name, priority=priority), "n1")
    assert nominator.lowest_priority_from(0, besides="one") == 5
    nominator.delete("two")
    assert nominator.lowest_priority_from(0, besides="one") == 9
    assert nominator.lowest_priority_from(0, besides="three") == 5
    assert nominator.lowest_priority_from(6, besides="three") is None
