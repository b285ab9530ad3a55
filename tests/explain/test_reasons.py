"""Why nodes are rejected, by plugin: one group for the same plugin and cause, with its numbers."""

import pytest
from tests.builders import make_node, make_pod, make_selector, make_term
from tests.explain.scenes import Scene
from tests.plugins.inter_pod_affinity.affinity_scenes import required, term
from tests.plugins.scenes import spread

from bayplan.explain.explanation import Eviction, LessOfResource, NoNodeAffinity, OneToleration, OtherLabel, Uncordon
from bayplan.framework.causes import Listed


def web(name, node, **fields):
    return make_pod(name, node=node, labels={"app": "web"}, **fields)


def test_nodes_without_enough_of_a_resource_are_one_line_however_many_they_are():
    nodes = [make_node(f"n{i}", cpu=4) for i in range(1, 498)]
    busy = [make_pod(f"b{i}", node=f"n{i}", cpu=1) for i in range(1, 498) if i != 12]
    tainted = [make_node(f"m{i}", cpu=64, taints=["dedicated=gpu:NoSchedule"]) for i in (10, 2, 1)]
    text = Scene([*nodes, *tainted], busy).text(make_pod(cpu="4500m"))
    assert text == [
        "default/p: 0 of 500 nodes fit",
        "  497 nodes: NodeResourcesFit: cpu, asked 4500m, most free 4000m on n12 (n1, n2, n3, n4, n5 and 492 more)",
        "    3 nodes: TaintToleration: taint dedicated=gpu:NoSchedule not tolerated (m1, m2 and m10)",
        "  would help: a toleration of dedicated=gpu:NoSchedule, on m1; or 500m less of cpu, on n12",
    ]


def test_nodes_that_lack_several_resources_are_a_group_of_their_own():
    nodes = [make_node("n1", cpu=1), make_node("n2", memory="1Gi"), make_node("n3", cpu=1, memory="1536Mi")]
    memory_of_n3 = "memory, asked 2Gi, most free 1536Mi on n3"
    text = Scene(nodes).text(make_pod(cpu=2, memory="2Gi"))
    assert text[1:4] == [
        "  1 node: NodeResourcesFit: cpu, asked 2000m, most free 1000m on n1 (n1)",
        "  1 node: NodeResourcesFit: memory, asked 2Gi, most free 1Gi on n2 (n2)",
        f"  1 node: NodeResourcesFit: cpu, asked 2000m, most free 1000m on n3; {memory_of_n3} (n3)",
    ]


ZONES = [make_node(f"n{i}", labels={"zone": "ab"[i % 2], "disk": f"d{i}"}) for i in range(4)]


@pytest.mark.parametrize(
    ("nodes", "running", "pod", "reason"),
    [
        pytest.param(
            [make_node("n1", pods=1)],
            [make_pod("r", node="n1")],
            make_pod(),
            "NodeResourcesFit: pods, no node takes one more",
            id="pods",
        ),
        pytest.param(
            [make_node("n1")],
            [],
            make_pod(requests={"example.com/gpu": 2}),
            "NodeResourcesFit: example.com/gpu, asked 2, of which these nodes have none",
            id="a resource that no node has",
        ),
        pytest.param(
            [make_node("n1", taints=["a:NoExecute", "b=c:NoSchedule", "d:PreferNoSchedule"])],
            [],
            make_pod(tolerations=["a"]),
            "TaintToleration: taint b=c:NoSchedule not tolerated",
            id="taint",
        ),
        pytest.param(
            [make_node("n1", unschedulable=True)],
            [],
            make_pod(),
            "NodeUnschedulable: node(s) were unschedulable",
            id="cordon",
        ),
        pytest.param(
            ZONES,
            [],
            make_pod(node_selector={"disk": "nvme"}),
            "NodeAffinity: label disk In nvme asked; "
            "values in the cluster: d0, d1, d2 and d3, but on these nodes none that fits",
            id="nodeSelector",
        ),
        pytest.param(
            ZONES,
            [],
            make_pod(node_affinity=[make_term("rack Exists")]),
            "NodeAffinity: label rack Exists asked, no node has it",
            id="one term",
        ),
        pytest.param(
            ZONES,
            [],
            make_pod(node_affinity=[make_term("zone In c"), make_term("disk In nvme")]),
            "NodeAffinity: none of 2 node affinity terms matches, which ask about disk and zone",
            id="several terms",
        ),
        pytest.param(
            [make_node("n1")],
            [make_pod("r", node="n1", host_ports=[80])],
            make_pod(host_ports=[80, 443]),
            "NodePorts: host port 80/TCP and 443/TCP taken by default/r on n1",
            id="ports",
        ),
        pytest.param(
            ZONES,
            [web("w2", "n0"), web("w10", "n2"), web("w1", "n1")],
            make_pod(pod_anti_affinity=required(term())),
            "InterPodAffinity: its anti-affinity in zone=a, blocked by default/w2 and default/w10; "
            "likewise in 1 more domain",
            id="anti-affinity",
        ),
        pytest.param(
            ZONES[:1],
            [make_pod("r", node="n0", pod_anti_affinity=required(term()))],
            make_pod(labels={"app": "web"}),
            "InterPodAffinity: their anti-affinity in zone=a, blocked by default/r",
            id="anti-affinity of others",
        ),
        pytest.param(
            ZONES,
            [],
            make_pod(pod_affinity=required(term())),
            "InterPodAffinity: affinity, no matching pod in the same zone",
            id="affinity",
        ),
        pytest.param(
            [*ZONES[:2], make_node("n5", labels={"zone": "c"}, unschedulable=True)],
            [web("w1", "n0"), web("w2", "n0"), web("w3", "n1")],
            make_pod(labels={"app": "web"}, spread=[spread(key="zone", selector=make_selector(app="web"))]),
            "PodTopologySpread: spread over zone, b and 1 more have 1 to 2 pods, the emptiest 0: skew 2 or more, "
            "allowed 1",
            id="skew",
        ),
        pytest.param(
            ZONES[:2],
            [web("w1", "n0"), web("w2", "n1")],
            make_pod(
                labels={"app": "web"}, spread=[spread(key="zone", selector=make_selector(app="web"), min_domains=3)]
            ),
            "PodTopologySpread: spread over zone, a and 1 more have 1 pod each, the emptiest counts as 0 with 2 of 3 "
            "minDomains: skew 2, allowed 1",
            id="fewer domains than minDomains",
        ),
        pytest.param(
            ZONES[:1],
            [make_pod("r", node="n0", pod_anti_affinity=required(term("zone"), term("rack")))],
            make_pod(labels={"app": "web"}),
            "InterPodAffinity: their anti-affinity in zone=a, blocked by default/r",
            id="a term whose label no node has",
        ),
        pytest.param(
            [make_node("n1")],
            [],
            make_pod(spread=[spread(key="rack", selector=make_selector(app="web"))]),
            "PodTopologySpread: spread over rack, a label that the nodes lack",
            id="no topology key",
        ),
    ],
)
def test_each_cause_is_told_with_what_was_asked_and_what_there_is(nodes, running, pod, reason):
    text = Scene(nodes, running).text(pod)
    assert any(reason in line for line in text), text


def test_a_pod_that_a_pre_filter_rejects_has_all_nodes_in_one_group():
    term_of_two = make_term(fields=["metadata.name In n1", "metadata.name In n2"])
    explanation = Scene([make_node("n1"), make_node("n2")]).explain(make_pod(node_affinity=[term_of_two]))
    (group,) = explanation.groups
    assert (group.count, group.plugin, explanation.changes) == (2, "NodeAffinity", ())


def test_nodes_that_a_pre_filter_leaves_out_are_told():
    scene = Scene([make_node("n1", cpu=1), make_node("n2"), make_node("n3")])
    pod = make_pod(cpu=2, node_affinity=[make_term(fields=["metadata.name In n1"])])
    assert {group.plugin: group.count for group in scene.explain(pod).groups} == {
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
    }


def test_a_label_that_a_node_has_otherwise_or_not_at_all_is_told_as_a_change():
    pod = make_pod(node_selector={"disk": "nvme"})
    assert Scene([make_node("n1", labels={"disk": "ssd"})]).explain(pod).changes == (
        OtherLabel("disk", "nvme", "ssd", "n1"),
    )
    assert Scene([make_node("n1")]).text(pod)[-1] == "  would help: to ask for no disk=nvme, on n1"


def test_nothing_single_helps_where_every_node_has_two_things_against_the_pod():
    scene = Scene([make_node("n1", cpu=1, taints=["a:NoSchedule"]), make_node("n2", cpu=1, memory="1Gi")])
    assert scene.text(make_pod(cpu=2, memory="2Gi"))[-1] == "  would help: nothing single"


def test_a_toleration_that_another_rule_reads_is_tried_out_before_it_is_told():
    # With the toleration the tainted zone counts for the spread, which then is what rejects the node.
    nodes = [
        make_node("n1", labels={"zone": "a"}, taints=["t:NoSchedule"]),
        make_node("n2", labels={"zone": "b"}, cpu=1),
    ]
    honors = spread(key="zone", selector=make_selector(app="web"), node_taints_policy="Honor")
    pod = make_pod(cpu=2, labels={"app": "web"}, spread=[honors])
    scene = Scene(nodes, [web("w1", "n1"), web("w2", "n1")])
    assert not any(isinstance(change, OneToleration) for change in scene.explain(pod).changes)

    # Where the first that is tried does not help, the next one may.
    other = make_node("n3", labels={"zone": "b"}, taints=["u:NoSchedule"])
    changes = Scene([*nodes, other], [web("w1", "n1"), web("w2", "n1")]).explain(pod).changes
    assert [each for each in changes if isinstance(each, OneToleration)] == [OneToleration("u", "", "NoSchedule", "n3")]


def test_a_request_that_the_limit_would_bring_back_is_made_smaller_and_not_left_out():
    (change,) = Scene([make_node("n1", cpu=1)]).explain(make_pod(cpu=2)).changes
    assert change == LessOfResource("cpu", 1000, "n1")


def test_a_request_is_never_advised_to_be_nothing():
    full = Scene([make_node("n1", cpu=1)], [make_pod("r", node="n1", cpu=1)])
    assert full.explain(make_pod(cpu=1)).changes == ()
    assert Scene([make_node("n1")]).explain(make_pod(requests={"nvidia.com/gpu": 1})).changes == ()


def test_nodes_that_lack_a_label_are_told_apart_from_those_with_another_value():
    nodes = [make_node("n1", labels={"gpu": "true"}, cpu=1), make_node("n2"), make_node("n3", labels={"gpu": "no"})]
    text = Scene(nodes).text(make_pod(cpu=2, node_selector={"gpu": "true"}))
    assert (
        "  1 node: NodeAffinity: label gpu In true asked; values in the cluster: no and true, "
        "but these nodes lack the label (n2)" in text
    )
    assert (
        "  1 node: NodeAffinity: label gpu In true asked; values in the cluster: no and true, "
        "but on these nodes none that fits (n3)" in text
    )


def test_nodes_that_a_daemon_is_not_pinned_to_say_where_it_is_pinned_to():
    pod = make_pod(cpu=2, node_affinity=[make_term(fields=["metadata.name In n1"])])
    assert "  1 node: NodeAffinity: pinned to n1 (n2)" in Scene([make_node("n1", cpu=1), make_node("n2")]).text(pod)


def test_a_cordoned_node_may_be_all_that_is_missing():
    scene = Scene([make_node("n1", cpu=1), make_node("n2", unschedulable=True)])
    pod = make_pod(cpu=2)
    assert Uncordon("n2") in scene.explain(pod).changes
    assert scene.text(pod)[-1] == "  would help: to uncordon n2; or 1000m less of cpu, on n1"


def test_a_cordoned_node_that_has_the_taint_of_it_may_be_all_that_is_missing():
    """The node controller puts the taint on every cordoned node, so that a second filter rejects it."""
    tainted = make_node("n3", unschedulable=True, taints=["node.kubernetes.io/unschedulable:NoSchedule"])
    scene = Scene([make_node("n1", cpu=1), make_node("n2", cpu=1, unschedulable=True), tainted])
    assert scene.explain(make_pod(cpu=2)).changes == (Uncordon("n3"), LessOfResource("cpu", 1000, "n1"))
    assert Uncordon not in map(type, scene.explain(make_pod(cpu=99)).changes)


def test_a_required_node_affinity_is_tried_out_where_nothing_else_is_against_the_pod():
    nodes = [
        make_node("n1", labels={"zone": "a"}),
        make_node("n2", labels={"zone": "a", "disk": "ssd"}),
        make_node("n3", labels={"disk": "ssd"}, cpu=1),
    ]
    pod = make_pod(cpu=2, node_affinity=[make_term("zone In b")], node_selector={"disk": "ssd"})
    assert Scene(nodes).explain(pod).changes == (NoNodeAffinity("n2"),)
    assert Scene(nodes).text(pod)[-1] == "  would help: no required node affinity, on n2"


def test_a_label_that_is_asked_for_twice_is_told_once():
    pod = make_pod(node_selector={"zone": "b"}, node_affinity=[make_term("zone In b")])
    (group,) = Scene([make_node("n1", labels={"zone": "a"})]).explain(pod).groups
    assert len(group.causes) == 1


def test_the_victims_that_preemption_found_are_a_change():
    scene = Scene([make_node("n1", cpu=4)], [make_pod("r", node="n1", cpu=3)])
    changes = scene.explain(make_pod(cpu=4, priority=10)).changes
    assert changes[-1] == Eviction(Listed(("default/r",)), "n1")


def test_a_list_of_nodes_is_sorted_as_people_count():
    nodes = [make_node(f"n{i}", cpu=1) for i in (10, 9, 2, 1, 100)]
    (group,) = Scene(nodes).explain(make_pod(cpu=2)).groups
    assert group.nodes == Listed(("n1", "n2", "n9", "n10", "n100"))


def test_there_is_nothing_to_explain_without_nodes():
    assert Scene([]).text(make_pod()) == ["default/p: 0 of 0 nodes fit"]


def test_an_explanation_is_made_anew_once_the_cluster_changes():
    scene = Scene([make_node("n1", cpu=1)])
    assert scene.explain(make_pod(cpu=2)).feasible == 0
    scene.cache.set_node(make_node("n2", cpu=4))
    assert scene.explain(make_pod(cpu=2)).feasible == 1
