import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import make_node
from tests.reference.sampling import REGION, ZONE, ReferenceTree

from bayplan.cache.node_tree import NodeTree

BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"


def tree(**zones):
    """A tree of nodes by name, in the zones given."""
    made = NodeTree()
    for name, zone in zones.items():
        made.set(node(name, zone))
    return made


def node(name, zone):
    return make_node(name, labels={ZONE: zone} if zone else None)


def test_zones_take_turns_and_each_keeps_the_order_its_nodes_came_in():
    assert tree(a1="a", a2="a", a3="a", b1="b", c1="c", c2="c").in_turn() == ["a1", "b1", "c1", "a2", "c2", "a3"]


def test_nodes_without_a_zone_are_a_zone_of_their_own():
    assert tree(x="", a1="a", y="", a2="a").in_turn() == ["x", "a1", "y", "a2"]


def test_a_zone_that_was_empty_comes_last_again():
    made = tree(a="a", b="b")
    made.remove("a")
    made.set(node("a", "a"))
    assert made.in_turn() == ["b", "a"]


def test_a_node_that_changes_zone_is_the_last_one_there():
    made = tree(a1="a", b1="b", b2="b")
    version = made.version
    made.set(node("a1", "b"))
    assert made.in_turn() == ["b1", "b2", "a1"]
    assert made.version == version, "no node came or went"


def test_a_change_of_anything_else_leaves_a_node_in_its_place():
    made = tree(a1="a", a2="a")
    made.set(make_node("a1", cpu="99", labels={ZONE: "a", "other": "label"}))
    assert made.in_turn() == ["a1", "a2"]


@pytest.mark.parametrize(
    ("labels", "others"),
    [
        ({ZONE: "z", REGION: "r"}, {BETA_ZONE: "z", BETA_REGION: "r"}),
        ({ZONE: "z", BETA_ZONE: "old"}, {BETA_ZONE: "old"}),
        ({ZONE: "z", BETA_ZONE: ""}, {}),
    ],
    ids=["the old labels are as good", "the old ones win", "also when empty"],
)
def test_which_labels_name_a_zone(labels, others):
    made = NodeTree()
    for name, given_labels in (("x1", labels), ("x2", others), ("y", {ZONE: "elsewhere"})):
        made.set(make_node(name, labels=given_labels))
    assert made.in_turn() == ["x1", "y", "x2"], "x1 and x2 are in the same zone"


def test_equal_zones_of_two_regions_are_two_zones():
    made = NodeTree()
    for name, region in (("n1", "r1"), ("n2", "r1"), ("n3", "r2")):
        made.set(make_node(name, labels={ZONE: "z", REGION: region}))
    assert made.in_turn() == ["n1", "n3", "n2"]


NAMES = st.sampled_from("abcdef")


@given(st.lists(st.tuples(NAMES, st.sampled_from(["", "x", "y", "z", None]))))
def test_a_tree_is_in_the_order_of_kube_schedulers(changes):
    made, reference = NodeTree(), ReferenceTree()
    for name, zone in changes:
        if zone is not None:
            made.set(node(name, zone))
            reference.set(name, {ZONE: zone} if zone else {})
        elif name in reference.zone_of:
            made.remove(name)
            reference.remove(name)
        reference.listed = []
        assert made.in_turn() == reference.snapshot()
        assert made.names() == reference.zone_of.keys()
