from typing import Any

import pytest
from tests.builders import make_node, make_pod, make_pod_info, make_term
from tests.plugins.scenes import Scene, hint, sign

from bayplan.api import objects
from bayplan.api.objects import NodeSelector, PreferredSchedulingTerm
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import NodeAffinityArgs
from bayplan.framework.cluster_event import NODE_ADD, NODE_LABEL
from bayplan.framework.status import SKIP, SUCCESS, Code
from bayplan.plugins.node_affinity import NodeAffinity

OF_POD = (2, ["node(s) didn't match Pod's node affinity/selector"])
ENFORCED = (2, ["node(s) didn't match scheduler-enforced node affinity"])

EAST = make_node("east", labels={"zone": "east", "size": "8"})
WEST = make_node("west", labels={"zone": "west", "size": "big"})
BARE = make_node("bare")


def affinity(scene: Scene, *, required: Any = None, preferred: Any = None) -> NodeAffinity:
    selector = None if required is None else NodeSelector(node_selector_terms=list(required))
    return NodeAffinity(NodeAffinityArgs(objects.NodeAffinity(selector, preferred)), scene.index)


def passing(pod, *nodes):
    scene = Scene(*(nodes or (EAST, WEST, BARE)))
    found = scene.rejections(NodeAffinity(NodeAffinityArgs(), scene.index), pod)
    assert all(verdict == OF_POD for verdict in found.values())
    return {name for name in ("east", "west", "bare") if name not in found}


def test_a_node_selector_wants_every_label_as_it_is():
    assert passing(make_pod(node_selector={"zone": "east"})) == {"east"}
    assert passing(make_pod(node_selector={"zone": "east", "size": "8"})) == {"east"}
    assert passing(make_pod(node_selector={"zone": "east", "size": "9"})) == set()
    assert passing(make_pod(node_selector={"missing": ""})) == set()


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("zone In east,north", {"east"}),
        ("zone In east,west", {"east", "west"}),
        ("zone NotIn east", {"west", "bare"}),
        ("zone Exists", {"east", "west"}),
        ("zone DoesNotExist", {"bare"}),
        ("size Gt 7", {"east"}),
        ("size Gt 8", set()),
        ("size Lt 9", {"east"}),
        ("zone In", set()),
        ("zone Exists x", set()),
        ("size Gt many", set()),
        ("zone Near east", set()),
    ],
)
def test_an_expression_selects_nodes_by_label(expression, expected):
    assert passing(make_pod(node_affinity=[make_term(expression)])) == expected


def test_one_term_must_hold_and_in_it_every_expression():
    either = [make_term("zone In east", "size Gt 7"), make_term("zone DoesNotExist")]
    assert passing(make_pod(node_affinity=either)) == {"east", "bare"}
    assert passing(make_pod(node_affinity=[make_term("zone In west", "size Gt 7")])) == set()


def test_no_terms_and_empty_terms_select_nothing():
    assert passing(make_pod(node_affinity=[])) == set()
    assert passing(make_pod(node_affinity=[make_term()])) == set()


def test_the_selector_and_the_affinity_must_both_hold():
    pod = make_pod(node_selector={"zone": "east"}, node_affinity=[make_term("size Exists")])
    assert passing(pod) == {"east"}
    assert passing(make_pod(node_selector={"zone": "east"}, node_affinity=[make_term("zone In west")])) == set()


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("metadata.name In east", {"east"}),
        ("metadata.name NotIn east", {"west", "bare"}),
        ("metadata.name In gone", set()),
        ("metadata.name NotIn gone", {"east", "west", "bare"}),
        ("metadata.name In east,west", set()),
        ("metadata.uid In east", set()),
        ("metadata.name Exists", set()),
    ],
)
def test_fields_select_by_one_name(field, expected):
    assert passing(make_pod(node_affinity=[make_term(fields=[field])])) == expected


def test_affinity_the_profile_adds_comes_first():
    scene = Scene(EAST, WEST, BARE)
    plugin = affinity(scene, required=[make_term("zone Exists")])
    assert scene.rejections(plugin, make_pod()) == {"bare": ENFORCED}
    assert scene.rejections(plugin, make_pod(node_selector={"zone": "east"})) == {"bare": ENFORCED, "west": OF_POD}


def test_the_filter_works_without_its_pre_filter():
    scene = Scene(EAST, WEST, BARE)
    plugin = NodeAffinity(NodeAffinityArgs(), scene.index)
    pod = make_pod(node_selector={"zone": "east"})
    assert scene.rejections(plugin, pod, with_pre_filter=False) == {"west": OF_POD, "bare": OF_POD}
    assert scene.rejections(plugin, make_pod(), with_pre_filter=False) == {}


def pre_filter(pod):
    scene = Scene()
    return NodeAffinity(NodeAffinityArgs(), scene.index).pre_filter({}, PodInfo(pod), scene.cache.nodes)


def test_a_pod_that_requires_nothing_skips_the_filter():
    assert pre_filter(make_pod()).status is SKIP
    assert pre_filter(make_pod(preferred=[(1, make_term("a Exists"))])).status is SKIP
    assert pre_filter(make_pod(node_selector={"a": "b"})).status is SUCCESS
    scene = Scene()
    plugin = affinity(scene, required=[make_term("zone Exists")])
    assert plugin.pre_filter({}, make_pod_info(), scene.cache.nodes).status is SUCCESS


@pytest.mark.parametrize(
    ("terms", "names"),
    [
        ([make_term(fields=["metadata.name In a"])], {"a"}),
        ([make_term(fields=["metadata.name In a"]), make_term("x Exists", fields=["metadata.name In b"])], {"a", "b"}),
        ([make_term(fields=["metadata.name In a,b", "metadata.name In b,c"])], {"b"}),
        ([make_term(fields=["metadata.name In a"]), make_term("x Exists")], None),
        ([make_term(fields=["metadata.name NotIn a"])], None),
        ([], None),
    ],
)
def test_the_search_is_narrowed_to_nodes_that_all_terms_name(terms, names):
    result = pre_filter(make_pod(node_affinity=terms))
    assert result.status is SUCCESS
    assert result.node_names == names


def test_terms_that_name_different_nodes_at_once_conflict():
    status = pre_filter(make_pod(node_affinity=[make_term(fields=["metadata.name In a", "metadata.name In b"])])).status
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message == "pod affinity terms conflict"


def test_the_raw_score_sums_the_weights_of_preferred_terms_that_hold():
    scene = Scene(EAST, WEST, BARE)
    plugin = NodeAffinity(NodeAffinityArgs(), scene.index)
    wishes = [
        (5, make_term("zone In east")),
        (7, make_term("zone Exists")),
        (100, make_term()),
        (0, make_term("a Exists")),
    ]
    assert scene.scores(plugin, make_pod(preferred=wishes)) == {"east": 12, "west": 7, "bare": 0}


def test_what_the_profile_prefers_is_added():
    scene = Scene(EAST, WEST)
    plugin = affinity(scene, preferred=[PreferredSchedulingTerm(3, make_term("zone In west"))])
    assert scene.scores(plugin, make_pod(preferred=[(5, make_term("zone In east"))])) == {"east": 5, "west": 3}
    assert scene.scores(plugin, make_pod()) == {"east": 0, "west": 3}


def test_without_preferences_the_score_is_left_out():
    scene = Scene()
    plain, adding = (
        NodeAffinity(NodeAffinityArgs(), scene.index),
        affinity(scene, preferred=[PreferredSchedulingTerm(3, make_term("a Exists"))]),
    )
    rows = scene.cache.nodes.rows()
    assert plain.pre_score({}, make_pod_info(node_selector={"a": "b"}), scene.cache.nodes, rows) is SKIP
    assert (
        plain.pre_score({}, make_pod_info(preferred=[(1, make_term("a Exists"))]), scene.cache.nodes, rows) is SUCCESS
    )
    assert adding.pre_score({}, make_pod_info(), scene.cache.nodes, rows) is SUCCESS


def test_an_absurd_weight_stays_within_bounds():
    scene = Scene(EAST)
    wish = [(10**30, make_term("zone Exists"))]
    assert scene.score(NodeAffinity(NodeAffinityArgs(), scene.index), make_pod(preferred=wish)) == 2**31 - 1


def test_selectors_and_affinity_make_the_shape():
    plugin = NodeAffinity(NodeAffinityArgs(), Scene().index)
    assert sign(plugin) == ()
    shapes = [
        sign(plugin, node_selector={"a": "b"}),
        sign(plugin, node_selector={"a": "c"}),
        sign(plugin, node_affinity=[make_term("a In b")]),
        sign(plugin, node_affinity=[make_term("a In c")]),
        sign(plugin, preferred=[(1, make_term("a In b"))]),
    ]
    assert len(set(shapes)) == 5
    assert sign(plugin, node_selector={"a": "b", "c": "d"}) == sign(plugin, node_selector={"c": "d", "a": "b"})


@pytest.mark.parametrize(
    ("event", "old", "new", "verdict"),
    [
        (NODE_ADD, None, EAST, "Queue"),
        (NODE_ADD, None, WEST, "QueueSkip"),
        (NODE_LABEL, WEST, EAST, "Queue"),
        (NODE_LABEL, EAST, EAST, "QueueSkip"),
        (NODE_LABEL, EAST, WEST, "QueueSkip"),
    ],
)
def test_only_nodes_that_begin_to_match_bring_the_pod_back(event, old, new, verdict):
    plugin = NodeAffinity(NodeAffinityArgs(), Scene().index)
    assert hint(plugin, event, make_pod(node_selector={"zone": "east"}), old, new) == verdict
    assert hint(plugin, event, make_pod(node_affinity=[make_term("zone In east")]), old, new) == verdict


def test_nodes_the_profile_rules_out_do_not_bring_the_pod_back():
    plugin = affinity(Scene(), required=[make_term("zone In west")])
    assert hint(plugin, NODE_ADD, make_pod(), None, EAST) == "QueueSkip"
    assert hint(plugin, NODE_ADD, make_pod(), None, WEST) == "Queue"
