from tests.builders import make_node, make_selector
from tests.plugins.inter_pod_affinity.affinity_scenes import required, term
from tests.plugins.preemption.worlds import World, high, low
from tests.plugins.scenes import spread

from bayplan.api.objects import LabelSelector
from bayplan.cache.pod_info import PodInfo
from bayplan.scheduler.decision import FitError, Placement


def test_room_made_for_a_pod_is_kept_from_its_equals_and_inferiors():
    world = World(make_node("n1", cpu="4"))
    world.nominator.add(PodInfo(high("first", cpu="3")), "n1")
    assert world.schedule(high("equal", cpu="2")).message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert isinstance(world.schedule(low("inferior", "", cpu="2")), FitError)
    assert isinstance(world.schedule(high("small", cpu="1")), Placement)
    assert isinstance(world.schedule(high("superior", cpu="2", priority=11)), Placement)


def test_room_is_free_again_when_the_nomination_ends():
    world = World(make_node("n1", cpu="4"))
    pod = PodInfo(high("equal", cpu="2"))
    world.nominator.add(PodInfo(high("first")), "n1")
    assert isinstance(world.schedule(pod), FitError)
    world.nominator.delete("first")
    assert isinstance(world.schedule(pod), Placement)
    world.nominator.add(PodInfo(high("first")), "n1")
    assert isinstance(world.schedule(pod), FitError)


def test_a_nominated_pod_takes_its_node_before_all_others():
    world = World(make_node("n1", cpu="40"), make_node("n2", cpu="4"))
    first = PodInfo(high("first"))
    world.nominator.add(first, "n2")
    assert world.schedule(first).node_name == "n2"
    assert world.schedule(high("other")).node_name == "n1"


def test_a_nominated_pod_goes_elsewhere_when_its_room_was_taken():
    world = World(make_node("n1", cpu="4"), make_node("n2", cpu="4"), low("thief", "n2", priority=99))
    first = PodInfo(high("first"))
    world.nominator.add(first, "n2")
    assert world.schedule(first).node_name == "n1"


def test_two_preemptors_never_count_on_the_same_room():
    world = World(make_node("n1", cpu="4"), make_node("n2", cpu="4"), low("a", "n1", cpu="4"), low("b", "n2", cpu="4"))
    nodes = set()
    for name in ("first", "second"):
        pod = PodInfo(high(name))
        node, _ = world.preempt(pod)
        world.nominator.add(pod, node)
        nodes.add(node)
    assert nodes == {"n1", "n2"}
    assert world.preempt(high("third")) == ("", [])


def test_a_pod_that_looks_again_counts_others_that_wait_for_its_node_and_not_itself():
    world = World(make_node("n1", cpu="4"), low("a", "n1", cpu="1"), low("b", "n1", cpu="1"), low("c", "n1", cpu="2"))
    first, other, alike = (PodInfo(high(name, cpu="1")) for name in ("first", "other", "alike"))
    for pod in (first, other):
        world.nominator.add(pod, "n1")
    assert world.preempt(first) == ("n1", ["c"])
    assert world.preempt(alike) == ("n1", ["b", "c"])
    assert world.preempt(other) == ("n1", ["c"])


def test_a_pod_that_looks_again_is_counted_as_small_as_it_was_made_meanwhile():
    world = World(make_node("n1", cpu="4"), low("a", "n1", cpu="2"), low("b", "n1", cpu="2"))
    world.nominator.add(PodInfo(high("first", cpu="1")), "n1")
    world.nominator.add(PodInfo(high("other", cpu="1")), "n1")
    assert world.preempt(high("first", cpu="3")) == ("n1", ["a", "b"])


def test_pods_nominated_by_others_with_requests_that_cannot_be_read_are_left_out():
    world = World(make_node("n1", cpu="4"))
    world.nominator.add(PodInfo(high("first", cpu="lots")), "n1")
    assert isinstance(world.schedule(high("equal")), Placement)


def test_a_nomination_counts_for_pod_anti_affinity():
    apart = required(term("zone", make_selector(app="a")))
    world = World(make_node("n1", cpu="40", labels={"zone": "z"}), make_node("n2", cpu="40", labels={"zone": "y"}))
    world.nominator.add(PodInfo(high("first", labels={"app": "a"})), "n1")
    assert world.schedule(high("other", pod_anti_affinity=apart)).node_name == "n2"
    outcome = world.schedule(high("other", pod_anti_affinity=apart, node_selector={"zone": "z"}))
    assert "didn't match pod anti-affinity rules" in outcome.message


def test_for_an_empty_selector_evicted_pods_make_up_for_nominated_ones():
    """Nobody on a node counts, those nominated to it do, and each pod taken off in a dry run counts one less."""
    host = "kubernetes.io/hostname"
    world = World(make_node("n1", cpu="4", labels={host: "n1"}), make_node("n2", cpu="500m", labels={host: "n2"}))
    world.add(low("a", cpu="1"), low("b", cpu="1", priority=2))
    world.nominator.add(PodInfo(high("waiting", cpu="1", priority=20)), "n1")
    even = high(cpu="1", spread=[spread(host, LabelSelector())])
    assert world.preempt(even) == ("n1", ["a"])
