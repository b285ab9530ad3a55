import numpy as np
import pytest
from tests.builders import make_node, make_pod, make_pod_info, make_selector
from tests.plugins.inter_pod_affinity.affinity_scenes import AffinityScene, preferred, required, term
from tests.plugins.scenes import hint

from bayplan.api.objects import LabelSelector
from bayplan.cache.scratch_table import ScratchTable
from bayplan.config.types import InterPodAffinityArgs
from bayplan.framework.cluster_event import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    ASSIGNED_POD_LABEL,
    NODE_ADD,
    NODE_LABEL,
    TARGET_POD_LABEL,
)
from bayplan.framework.interface import CycleState
from bayplan.framework.status import Code
from bayplan.plugins.inter_pod_affinity.filter_and_score import normalize

AFFINITY = (2, ["node(s) didn't match pod affinity rules"])
ANTI_AFFINITY = (1, ["node(s) didn't match pod anti-affinity rules"])
OTHERS = (1, ["node(s) didn't satisfy existing pods anti-affinity rules"])

WEB = {"app": "web"}
DB = {"app": "db"}
NEAR_WEB = required(term())
FOR_DB = term(selector=make_selector(app="db"))


def zoned(name: str, zone: str | None = None, **labels: str):
    return make_node(name, uid=name, labels=labels | ({} if zone is None else {"zone": zone}))


def cluster(*pods, **rest) -> AffinityScene:
    return AffinityScene(zoned("a1", "a"), zoned("a2", "a"), zoned("b", "b"), zoned("bare"), *pods, **rest)


def test_a_pod_goes_where_a_pod_it_must_be_near_shares_the_topology():
    scene = cluster(make_pod("w", node="a1", labels=WEB))
    assert scene.rejected(make_pod(pod_affinity=NEAR_WEB)) == {"b": AFFINITY, "bare": AFFINITY}


def test_one_pod_must_match_all_affinity_terms():
    both = required(term(), term(selector=make_selector(tier="1")))
    apart = cluster(make_pod("w", node="a1", labels=WEB), make_pod("t", node="a1", labels={"tier": "1"}))
    assert apart.rejected(make_pod(pod_affinity=both)).keys() == {"a1", "a2", "b", "bare"}
    together = cluster(make_pod("w", node="a1", labels=WEB | {"tier": "1"}))
    assert together.rejected(make_pod(pod_affinity=both)).keys() == {"b", "bare"}


def test_the_first_pod_of_a_group_may_start_anywhere_the_topology_is_known():
    assert cluster().rejected(make_pod(pod_affinity=NEAR_WEB, labels=WEB)) == {"bare": AFFINITY}
    assert len(cluster().rejected(make_pod(pod_affinity=NEAR_WEB, labels=DB))) == 4
    elsewhere = cluster(make_pod("w", node="bare", labels=WEB))
    assert elsewhere.rejected(make_pod(pod_affinity=NEAR_WEB, labels=WEB)).keys() == {"bare"}
    joined = cluster(make_pod("w", node="b", labels=WEB))
    assert joined.rejected(make_pod(pod_affinity=NEAR_WEB, labels=WEB)).keys() == {"a1", "a2", "bare"}


@pytest.mark.parametrize("key", ["", "rack"])
def test_a_topology_no_node_has_fails_affinity_and_never_anti_affinity(key):
    scene = cluster(make_pod("w", node="a1", labels=WEB))
    assert len(scene.rejected(make_pod(pod_affinity=required(term(key)), labels=WEB))) == 4
    assert scene.rejected(make_pod(pod_anti_affinity=required(term(key)))) == {}
    scene.cache.set_node(zoned("a2", "a", rack="r"))
    assert scene.rejected(make_pod(pod_anti_affinity=required(term("rack")))) == {}
    scene.cache.set_node(zoned("a1", "a", rack="r"))
    assert scene.rejected(make_pod(pod_anti_affinity=required(term("rack")))).keys() == {"a1", "a2"}


def test_anti_affinity_holds_in_both_directions_and_spares_nodes_without_the_label():
    hermit = make_pod("h", node="a1", labels=WEB, pod_anti_affinity=required(FOR_DB))
    scene = cluster(hermit, make_pod("h2", node="bare", labels=WEB, pod_anti_affinity=required(FOR_DB)))
    assert scene.rejected(make_pod(labels=DB)) == {"a1": OTHERS, "a2": OTHERS}
    assert scene.rejected(make_pod(labels={"app": "other"})) == {}
    shy = make_pod(pod_anti_affinity=NEAR_WEB)
    assert scene.rejected(shy) == {"a1": ANTI_AFFINITY, "a2": ANTI_AFFINITY}


def test_only_the_first_reason_is_told():
    hermit = make_pod("h", node="a1", labels=WEB, pod_anti_affinity=required(FOR_DB))
    near_and_far = {"pod_affinity": required(term("zone", make_selector(app="none"))), "pod_anti_affinity": NEAR_WEB}
    scene = cluster(hermit)
    assert scene.rejected(make_pod(labels=DB, **near_and_far)) == dict.fromkeys(("a1", "a2", "b", "bare"), AFFINITY)
    assert scene.rejected(make_pod(labels=DB, pod_anti_affinity=NEAR_WEB)) == {
        "a1": ANTI_AFFINITY,
        "a2": ANTI_AFFINITY,
    }


@pytest.mark.parametrize(
    ("fields", "matches"),
    [
        ({}, False),
        ({"namespaces": ["other"]}, True),
        ({"namespaces": ["third"]}, False),
        ({"namespace_selector": LabelSelector()}, True),
        ({"namespace_selector": make_selector(team="red")}, True),
        ({"namespace_selector": make_selector(team="blue")}, False),
        ({"namespaces": ["other"], "namespace_selector": make_selector(team="blue")}, True),
    ],
)
def test_a_term_looks_into_its_own_namespace_or_those_it_names_or_selects(fields, matches):
    scene = cluster(make_pod("w", namespace="other", node="a1", labels=WEB))
    scene.set_namespace("other", team="red")
    scene.set_namespace("default", team="green")
    found = scene.rejected(make_pod(pod_anti_affinity=required(term(**fields))))
    assert found == ({"a1": ANTI_AFFINITY, "a2": ANTI_AFFINITY} if matches else {})
    theirs = cluster(make_pod("h", node="a1", pod_anti_affinity=required(term(**fields))))
    theirs.set_namespace("other", team="red")
    found = theirs.rejected(make_pod(namespace="other", labels=WEB))
    assert found == ({"a1": OTHERS, "a2": OTHERS} if matches else {})


def test_a_namespace_selector_that_holds_without_labels_selects_by_labels_all_the_same():
    picky = required(term(namespace_selector=make_selector("team NotIn red")))
    scene = cluster(make_pod("w", namespace="other", node="a1", labels=WEB))
    scene.set_namespace("other", team="red")
    assert scene.rejected(make_pod(pod_anti_affinity=picky)) == {}
    scene.set_namespace("other", team="blue")
    assert scene.rejected(make_pod(pod_anti_affinity=picky)).keys() == {"a1", "a2"}


def test_wishes_of_the_pod_and_of_others_add_up_by_domain():
    wish = preferred((10, term()))
    scene = cluster(
        make_pod("w", node="a1", labels=WEB),
        make_pod("liked", node="b", labels=DB, pod_affinity=preferred((3, FOR_DB))),
        make_pod("shunned", node="b", pod_anti_affinity=preferred((5, FOR_DB))),
    )
    assert scene.raw_scores(make_pod(labels=DB, pod_affinity=wish)) == {"a1": 10, "a2": 10, "b": -2, "bare": 0}
    assert scene.raw_scores(make_pod(labels=DB, pod_anti_affinity=wish)) == {"a1": -10, "a2": -10, "b": -2, "bare": 0}


@pytest.mark.parametrize("weight", [0, 1, 7])
def test_required_affinity_of_others_counts_with_the_hard_weight(weight):
    args = InterPodAffinityArgs(hard_pod_affinity_weight=weight)
    scene = cluster(make_pod("h", node="a1", pod_affinity=required(FOR_DB)), args=args)
    expected = {"a1": weight, "a2": weight, "b": 0, "bare": 0} if weight else None
    assert scene.raw_scores(make_pod(labels=DB)) == expected


def test_wishes_of_others_can_be_ignored_for_pods_without_any():
    args = InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=True)
    scene = cluster(make_pod("liked", node="b", labels=DB, pod_affinity=preferred((3, FOR_DB))), args=args)
    assert scene.raw_scores(make_pod(labels=DB)) is None
    assert scene.raw_scores(make_pod(labels=DB, pod_affinity=preferred((1, term()))))["b"] == 3


def test_nothing_to_count_skips_the_plugin():
    scene, state, pod = cluster(make_pod("w", node="a1", labels=WEB)), CycleState(), make_pod_info(labels=WEB)
    table = scene.cache.nodes
    assert scene.plugin.pre_filter(state, pod, table).status.code is Code.SKIP
    assert scene.plugin.pre_score(state, pod, table, table.rows()).code is Code.SKIP
    assert scene.raw_scores(make_pod(pod_affinity=preferred((1, FOR_DB)))) is None


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ({"pod_affinity": preferred((3, FOR_DB)), "pod_anti_affinity": preferred((3, term()), (3, FOR_DB))}, [{}]),
        ({"pod_affinity": preferred((3, FOR_DB))}, [{"pod_anti_affinity": preferred((3, FOR_DB))}]),
        ({}, [{"pod_affinity": preferred((3, FOR_DB))}, {"pod_anti_affinity": preferred((3, FOR_DB))}]),
        ({}, [{"pod_affinity": preferred((3, FOR_DB)), "pod_anti_affinity": preferred((3, FOR_DB))}]),
        ({}, [{"pod_affinity": required(FOR_DB), "pod_anti_affinity": preferred((1, FOR_DB))}]),
    ],
)
def test_weights_that_cancel_out_are_scored_as_none(mine, theirs):
    placed = [make_pod(f"p{index}", node="a1", labels=DB, **each) for index, each in enumerate(theirs)]
    scene = cluster(*placed)
    assert scene.raw_scores(make_pod(labels=DB, **mine)) == dict.fromkeys(("a1", "a2", "b", "bare"), 0)
    for each in placed:
        scene.cache.remove_pod(each.metadata.uid)
    assert scene.raw_scores(make_pod(labels=DB, **mine)) is None


def test_scores_spread_over_0_to_100_and_are_cut_as_float64_gives_them():
    assert normalize(np.array([0, 29, 58, 100], dtype=np.int64)).tolist() == [0, 28, 57, 100]
    assert normalize(np.array([-7, -7], dtype=np.int64)).tolist() == [0, 0]
    assert normalize(np.array([-10, 0, 5], dtype=np.int64)).tolist() == [0, 66, 100]
    assert normalize(np.array([], dtype=np.int64)).tolist() == []


def test_an_invalid_selector_rejects_the_pod_and_drops_the_terms_of_a_pod_on_a_node():
    wrong = required(term(selector=make_selector("app Near web")), FOR_DB)
    scene = cluster(make_pod("h", node="a1", pod_anti_affinity=wrong))
    assert scene.rejected(make_pod(labels=DB)) == {}
    result = scene.plugin.pre_filter({}, make_pod_info(pod_anti_affinity=wrong), scene.cache.nodes)
    assert result.status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert result.status.message.startswith("parsing pod: requiredAntiAffinityTerms: ")


def test_pods_share_a_shape_until_a_term_asks_about_what_tells_them_apart():
    scene = cluster()
    first, second = (make_pod_info(labels=WEB | {"pod": name}) for name in "12")
    sign = scene.plugin.sign_pod
    assert sign(first) == sign(second) == sign(make_pod_info(namespace="other")) == ()
    inputs = scene.plugin.sign_inputs(first)
    scene.cache.set_pod(make_pod_info("h", node="a1", pod_anti_affinity=required(term())))
    assert scene.plugin.sign_inputs(first) != inputs
    assert sign(first) == sign(second) != sign(make_pod_info(labels=DB))
    assert sign(first) != sign(make_pod_info(labels=WEB, namespace="other"))
    inputs = scene.plugin.sign_inputs(first)
    by_pod = required(term(selector=make_selector("pod In 1")))
    scene.cache.set_pod(make_pod_info("i", node="a1", pod_anti_affinity=by_pod))
    assert scene.plugin.sign_inputs(first) != inputs
    assert sign(first) != sign(second)


def test_terms_of_the_pod_tell_shapes_apart():
    def sign(**pod):
        return cluster().plugin.sign_pod(make_pod_info(**pod))

    assert sign(pod_affinity=NEAR_WEB) == sign(pod_affinity=required(term()))
    assert sign(pod_affinity=NEAR_WEB) != sign(pod_anti_affinity=NEAR_WEB)
    assert sign(pod_affinity=NEAR_WEB, labels=WEB) != sign(pod_affinity=NEAR_WEB)
    assert sign(pod_affinity=NEAR_WEB, labels={"id": "1"}) == sign(pod_affinity=NEAR_WEB)
    assert sign(pod_affinity=preferred((1, term()))) != sign(pod_affinity=preferred((2, term())))


def test_it_answers_for_a_table_on_which_pods_are_tried_out():
    scene = cluster(make_pod("h", uid="h", node="a1", pod_anti_affinity=required(FOR_DB)))
    scratch, state, pod = ScratchTable(scene.cache.nodes), CycleState(), make_pod_info(labels=DB)
    scratch.follow()
    row = scratch.row("a1")
    rows = np.array([row])
    assert scene.plugin.pre_filter(state, pod, scratch).status.code is Code.SUCCESS
    assert scene.plugin.filter(state, pod, scratch, rows).tolist() == [1]
    scratch.remove_pod(scratch.pods[row]["h"], row)
    assert scene.plugin.filter(state, pod, scratch, rows).tolist() == [0]
    assert scene.rejected(make_pod(labels=DB)).keys() == {"a1", "a2"}


ONLY_NEAR, ONLY_FAR = make_pod("t", pod_affinity=NEAR_WEB), make_pod("t", pod_anti_affinity=NEAR_WEB)
FAR_FROM_TWO = make_pod("t", pod_anti_affinity=required(term(), FOR_DB))


@pytest.mark.parametrize(
    ("event", "pod", "old", "new", "expected"),
    [
        (ASSIGNED_POD_ADD, ONLY_NEAR, None, make_pod(labels=WEB), "Queue"),
        (ASSIGNED_POD_ADD, ONLY_NEAR, None, make_pod(labels=DB), "QueueSkip"),
        (ASSIGNED_POD_ADD, ONLY_FAR, None, make_pod(labels=WEB), "QueueSkip"),
        (ASSIGNED_POD_LABEL, ONLY_NEAR, make_pod(labels=DB), make_pod(labels=WEB), "Queue"),
        (ASSIGNED_POD_LABEL, ONLY_NEAR, make_pod(labels=WEB), make_pod(labels=WEB), "QueueSkip"),
        (ASSIGNED_POD_LABEL, ONLY_FAR, make_pod(labels=WEB), make_pod(labels=DB), "Queue"),
        (ASSIGNED_POD_LABEL, ONLY_FAR, make_pod(labels=DB), make_pod(labels=WEB), "QueueSkip"),
        (ASSIGNED_POD_DELETE, ONLY_FAR, make_pod(labels=WEB), None, "Queue"),
        (ASSIGNED_POD_DELETE, ONLY_NEAR, make_pod(labels=WEB), None, "QueueSkip"),
        (ASSIGNED_POD_DELETE, make_pod(labels=WEB), make_pod(pod_anti_affinity=NEAR_WEB), None, "Queue"),
        (TARGET_POD_LABEL, ONLY_NEAR, ONLY_NEAR, ONLY_NEAR, "Queue"),
        (ASSIGNED_POD_LABEL, FAR_FROM_TWO, make_pod(labels=WEB), make_pod(labels={}), "Queue"),
        (ASSIGNED_POD_DELETE, FAR_FROM_TWO, make_pod(labels=WEB), None, "Queue"),
        (ASSIGNED_POD_DELETE, make_pod(labels=WEB), FAR_FROM_TWO, None, "Queue"),
        (NODE_ADD, ONLY_NEAR, None, zoned("n", "a"), "Queue"),
        (NODE_ADD, ONLY_NEAR, None, zoned("n"), "QueueSkip"),
        (NODE_ADD, ONLY_FAR, None, zoned("n"), "Queue"),
        (NODE_ADD, make_pod(), None, zoned("n", "a"), "QueueSkip"),
        (NODE_LABEL, ONLY_NEAR, zoned("n"), zoned("n", "a"), "Queue"),
        (NODE_LABEL, ONLY_NEAR, zoned("n", "b"), zoned("n", "a"), "Queue"),
        (NODE_LABEL, ONLY_NEAR, zoned("n", "a"), zoned("n"), "QueueSkip"),
        (NODE_LABEL, ONLY_NEAR, zoned("n", "a"), zoned("n", "a", x="y"), "QueueSkip"),
        (NODE_LABEL, ONLY_FAR, zoned("n", "a"), zoned("n"), "Queue"),
        (NODE_LABEL, ONLY_FAR, zoned("n", "a"), zoned("n", "b"), "Queue"),
        (NODE_LABEL, ONLY_FAR, zoned("n"), zoned("n", "b"), "QueueSkip"),
    ],
)
def test_events_wake_the_pods_they_may_help(event, pod, old, new, expected):
    assert hint(cluster().plugin, event, pod, old, new) == expected
