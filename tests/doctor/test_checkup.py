"""Each fault that is planted is found, with what it costs on that cluster; a good cluster has none."""

from dataclasses import replace

import pytest
from tests.builders import make_node, make_pod_info, make_selector
from tests.doctor.patients import GPU, budget, configuration, found, nodes, running, service, spread_out

from bayplan.api.meta_objects import format_time
from bayplan.api.objects import Condition, PodAffinity, PodAffinityTerm, Toleration, WeightedPodAffinityTerm
from bayplan.config.types import PodTopologySpreadDefaulting, ScoringStrategyType

MIB = 2**20
NOW = 1_800_000_000.0
SAVES = "all pods placed anew take 4 nodes as it is, 1 with the fix"
ANNOTATION = "cluster-autoscaler.kubernetes.io"


def only(findings):
    """The one finding, as check, what it is about, message and effect; its fix."""
    (finding,) = findings
    return (finding.check, finding.about, finding.message, finding.effect), finding.fix


def test_a_good_cluster_has_nothing():
    zoned = [
        make_node(f"n{number}", cpu=8, pods=110, labels={"kubernetes.io/hostname": f"n{number}"}, images={"web": MIB})
        for number in range(1, 5)
    ]
    pods = spread_out(labels={"app": "a"}, images=["web"])
    pods += [make_pod_info("waits", cpu=9), make_pod_info("nominated", cpu=1, nominated="n1")]
    others = [
        ("NodePool", {"metadata": {"name": "p"}, "spec": {"disruption": {"consolidationPolicy": "WhenEmpty"}}}),
        ("Node", {"metadata": {"name": "n1", "annotations": {"a": "b"}}}),
        ("DeschedulerPolicy", {"profiles": [{"plugins": {"balance": {"enabled": ["HighNodeUtilization"]}}}]}),
    ]
    assert found(zoned, pods, looked_up=[budget(1, 3, app="a"), service(app="a")], others=others) == []


def test_a_strategy_that_spreads():
    told, fix = only(found(nodes(), spread_out(), config=configuration(ScoringStrategyType.LEAST_ALLOCATED)))
    assert told == ("strategy", "bayplan", "LeastAllocated spreads pods", SAVES)
    assert "type: MostAllocated" in fix


def test_balanced_allocation_that_outvotes_the_strategy():
    daemons = [
        make_pod_info(f"d{number}", node=f"n{number}", memory="8Gi", owner="DaemonSet/d") for number in range(1, 5)
    ]
    pods = [*daemons, *spread_out(memory="100Mi")]
    told, fix = only(found(nodes(), pods, config=configuration(NodeResourcesBalancedAllocation=10)))
    assert told == ("outvoted", "NodeResourcesBalancedAllocation", "its score outvotes the strategy", SAVES)
    assert "score:\n      disabled:\n      - name: NodeResourcesBalancedAllocation" in fix


def test_images_that_outvote_the_strategy():
    places = [make_node(f"n{number}", cpu=8, images={f"i{number}:1": 900 * MIB}) for number in range(1, 5)]
    pods = [running(f"p{number}", f"n{number}", images=[f"i{number}:1"]) for number in range(1, 5)]
    told, _ = only(found(places, pods, config=configuration(ImageLocality=10)))
    assert told == ("outvoted", "ImageLocality", "its score outvotes the strategy", SAVES)


def test_default_spreading_that_outvotes_the_strategy():
    labels = [{"kubernetes.io/hostname": f"n{number}", "topology.kubernetes.io/zone": "a"} for number in range(1, 5)]
    places = [make_node(f"n{number}", cpu=8, labels=each) for number, each in enumerate(labels, 1)]
    config = configuration(spread=PodTopologySpreadDefaulting.SYSTEM)
    pods = spread_out(labels={"app": "a"})
    told, fix = only(found(places, pods, looked_up=[service(app="a")], config=config))
    assert told == ("outvoted", "PodTopologySpread", "its default constraints outvote the strategy", SAVES)
    assert "defaultingType: List" in fix


def test_preferences_of_pods_that_outvote_the_strategy():
    term = PodAffinityTerm(label_selector=make_selector(app="a"), topology_key="kubernetes.io/hostname")
    apart = PodAffinity(preferred_during_scheduling_ignored_during_execution=[WeightedPodAffinityTerm(100, term)])
    places = [make_node(f"n{number}", cpu=8, labels={"kubernetes.io/hostname": f"n{number}"}) for number in range(1, 5)]
    told, _ = only(found(places, spread_out(labels={"app": "a"}, pod_anti_affinity=apart)))
    assert told == ("outvoted", "InterPodAffinity", "its score outvotes the strategy", SAVES)


def test_devices_that_the_strategy_does_not_count():
    pods = [
        running("g1", "n1", 2, requests={GPU: 1}, priority=30),
        running("c1", "n2", 7, priority=20),
        running("g2", "n2", 1, requests={GPU: 1}, priority=10),
    ]
    told, fix = only(found(nodes(2, allocatable={GPU: 4}), pods))
    free = f"{GPU} on nodes where none is taken: 0 as it is, 4 with it"
    effect = f"all pods placed anew take 2 nodes as it is, 2 with the fix; {free}"
    assert told == ("scarce-without-weight", GPU, "pods ask for it, and the strategy does not count it", effect)
    assert f"- name: {GPU}\n          weight: 5" in fix


def test_pods_without_requests():
    pods = [*spread_out(), *(make_pod_info(f"free{number}", node="n1", owner="ReplicaSet/x") for number in range(3))]
    told, fix = only(found(nodes(), pods))
    assert told == (
        "without-requests",
        "3 pods",
        "without a request for cpu or memory, 3 of them in namespace default",
        "up to 3 on a node count as nothing; all pods placed anew take 1 node, 2 where they ask for that",
    )
    assert "namespace: default" in fix


def test_pods_without_requests_that_cost_nothing_are_no_finding():
    assert found(nodes(), [*spread_out(1), make_pod_info("free", node="n1", owner="ReplicaSet/x")]) == []


def test_pods_without_requests_that_would_find_no_node_with_them():
    pods = [running("full", "n1", 7), *(make_pod_info(f"f{n}", node="n1", owner="ReplicaSet/x") for n in range(20))]
    told, _ = only(found(nodes(1), pods))
    assert told[-1] == (
        "up to 20 on a node count as nothing; all pods placed anew take 1 node, 1 where they ask for that, "
        "and 10 pods without a node"
    )


def test_pods_that_nothing_would_make_again_and_the_nodes_they_keep():
    alone = [make_pod_info(f"a{number}", node=f"n{number}", cpu=1, uid=f"a{number}") for number in (1, 2)]
    told, fix = only(found(nodes(), [*alone, running("web", "n3")]))
    assert told == (
        "without-controller",
        "2 pods",
        "nothing would make such a pod again, so nobody moves it",
        "they keep 2 nodes in use; all pods placed anew take 2 nodes as it is, 1 with the fix",
    )
    assert fix.startswith("kind: Deployment")


def test_pods_that_nothing_would_make_again_and_that_cost_no_node_are_no_finding():
    assert found(nodes(), [make_pod_info("alone", node="n1", cpu=1), running("web", "n1")]) == []


def test_pods_that_nothing_would_make_again_are_no_finding_where_the_fix_frees_no_node_that_is_in_use():
    alone = [make_pod_info("p1", node="n1", cpu=4, uid="p1"), make_pod_info("p4", node="n2", cpu=3, uid="p4")]
    # The others placed anew take a third node, and all of them placed anew the two that are in use.
    others = [running("p0", "n2", cpu=1), running("p2", "n1", cpu=4), running("p3", "n2", cpu=4)]
    assert found(nodes(), [*alone, *others]) == []
    # A pod that waits has a node in either case.
    assert found(nodes(), [*alone, *others, make_pod_info("waits", cpu=8)]) == []


def test_a_profile_that_no_pod_names():
    pods = [*spread_out(scheduler_name="default-scheduler"), make_pod_info("waits", scheduler_name="other")]
    told, fix = only(found(nodes(), pods))
    assert told == (
        "unnamed-profile",
        "bayplan",
        "no pod names it as its schedulerName",
        "it decides for none of 5 pods; most, 4, have default-scheduler",
    )
    assert "schedulerName: bayplan" in fix
    assert "--scheduler-name default-scheduler" in fix


def test_a_flag_that_renames_the_only_profile_is_not_told_where_there_are_two():
    one = configuration()
    both = replace(one, profiles=(*one.profiles, replace(one.profiles[0], scheduler_name="spread")))
    told, fix = only(found(nodes(), spread_out(1), config=both))
    assert told[:2] == ("unnamed-profile", "spread")
    assert fix == "kind: Deployment\nspec: {template: {spec: {schedulerName: spread}}}"


def test_a_profile_that_only_waiting_pods_name_is_no_finding():
    pods = [*spread_out(1, scheduler_name="other"), make_pod_info("waits", cpu=1)]
    assert found(nodes(1), pods) == []


def test_pods_on_nodes_with_devices_that_ask_for_none():
    places = [*nodes(2), make_node("gpu", cpu=16, allocatable={GPU: 4})]
    pods = [running("a", "gpu"), running("b", "n1"), running("g", "gpu", requests={GPU: 1})]
    told, fix = only(found(places, pods))
    assert told == (
        "guests-on-devices",
        GPU,
        "1 pod without a request for it on 1 of 1 node with it",
        "with the taint they find other nodes; all pods placed anew take 2 nodes as it is, 2 with the fix",
    )
    assert fix.startswith(f"kubectl taint nodes gpu {GPU}=:NoSchedule")


def test_a_budget_that_never_allows_a_disruption():
    pods = spread_out(labels={"app": "a"}, conditions=[Condition("Ready", "True")])
    told, fix = only(found(nodes(), pods, looked_up=[budget(0, 4, app="a")]))
    assert told == (
        "never-disrupted",
        "default/web",
        "wants 4 of 4 pods healthy, and so allows no eviction, ever",
        "no drain gets 4 pods off 4 nodes; preemption takes them last",
    )
    assert "kubectl patch pdb web -n default" in fix


def test_a_budget_that_allows_none_for_now_is_no_finding():
    pods = spread_out(labels={"app": "a"}, conditions=[Condition("Ready", "True")])
    assert found(nodes(), pods, looked_up=[budget(0, 3, app="a")]) == []


@pytest.mark.parametrize("later", [{"node": "n2", "conditions": [Condition("Ready", "False")]}, {}])
def test_a_budget_that_allows_none_until_another_pod_is_ready_or_has_a_node_is_no_finding(later):
    ready = running("web-0", "n1", labels={"app": "a"}, conditions=[Condition("Ready", "True")])
    pods = [ready, make_pod_info("web-1", cpu=2, labels={"app": "a"}, owner="ReplicaSet/web", **later)]
    assert found(nodes(2), pods, looked_up=[budget(0, 1, app="a")]) == []


@pytest.mark.parametrize("node", ["gone", "closed", "n1"])
def test_a_nomination_to_a_node_that_the_pod_cannot_get(node):
    places = [*nodes(1), make_node("closed", cpu=8, unschedulable=True)]
    there = running("p1", "n1", priority=100)
    nominated = make_pod_info("foreign", cpu=7, nominated=node, priority=100, scheduler_name="other")
    told, fix = only(found(places, [there, nominated, make_pod_info("waits", cpu=4)]))
    counts = "0 of the pods that wait fit as it is, 1" if node == "n1" else "1 of the pods that wait fit as it is, 1"
    assert told == (
        "stale-nomination",
        "default/foreign",
        f"is nominated to {node}, which is gone, closed or full of pods that are as important",
        f"{counts} without; no autoscaler adds a node for it",
    )
    assert "kubectl patch pod foreign -n default --subresource status" in fix


def test_a_nomination_to_a_node_with_victims_on_it_is_no_finding():
    nominated = make_pod_info("urgent", cpu=7, nominated="n1", priority=100, scheduler_name="other")
    assert found(nodes(1), [running("p1", "n1"), nominated]) == []


def test_a_guest_that_tolerates_the_taint_is_no_finding():
    places = [*nodes(2), make_node("gpu", cpu=16, allocatable={GPU: 4}, taints=[f"{GPU}=:NoSchedule"])]
    guest = running("a", "gpu", tolerations=[Toleration(GPU, "Exists")])
    device = running("g", "gpu", requests={GPU: 1}, tolerations=[Toleration(GPU, "Exists")])
    assert found(places, [guest, device]) == []


def test_a_fix_is_one_command_whatever_a_stranger_calls_his_objects():
    pool = {"metadata": {"name": "x; echo owned"}, "spec": {"disruption": {}}}
    _, fix = only(found(nodes(), spread_out(), others=[("NodePool", pool)]))
    assert fix.startswith("kubectl patch nodepool 'x; echo owned' --type merge")


@pytest.mark.parametrize("disruption", [{}, {"consolidationPolicy": "WhenEmptyOrUnderutilized"}])
def test_an_autoscaler_that_moves_pods_beside_packing(disruption):
    pool = {"metadata": {"name": "general"}, "spec": {"disruption": disruption}}
    told, fix = only(found(nodes(), spread_out(), others=[("NodePool", pool)]))
    assert told == (
        "consolidation",
        "NodePool general",
        "Karpenter evicts pods from nodes with room, and the scheduler places them again",
        "4 pods on 4 nodes may be evicted; all pods placed anew take 1 node",
    )
    assert '"consolidationPolicy": "WhenEmpty"' in fix


@pytest.mark.parametrize(
    ("kind", "name", "annotation", "value"),
    [("Node", "n1", "scale-down-disabled", "true"), ("Pod", "p1", "safe-to-evict", "false")],
)
def test_annotations_that_keep_nodes_which_packing_empties(kind, name, annotation, value):
    kept = {"metadata": {"name": name, "annotations": {f"{ANNOTATION}/{annotation}": value}}}
    told, fix = only(found(nodes(), spread_out(), others=[(kind, kept)]))
    assert told == (
        "kept-nodes",
        f"1 {kind.lower()}",
        f"{ANNOTATION}/{annotation} is {value}",
        "1 node of 4 in use cannot be removed; all pods placed anew take 1 node",
    )
    assert fix == f"kubectl annotate {kind.lower()} {name} {ANNOTATION}/{annotation}-"


def test_a_descheduler_that_empties_full_nodes():
    policy = {
        "metadata": {"name": "policy"},
        "profiles": [
            {
                "pluginConfig": [{"name": "LowNodeUtilization", "args": {"targetThresholds": {"cpu": 50}}}],
                "plugins": {"balance": {"enabled": ["LowNodeUtilization"]}},
            }
        ],
    }
    told, fix = only(found(nodes(), spread_out(), others=[("DeschedulerPolicy", policy)]))
    assert told == (
        "descheduling",
        "DeschedulerPolicy policy",
        "LowNodeUtilization evicts pods from full nodes, and the scheduler packs them again",
        "all pods placed anew take 1 node, of which 1 are above its 50 % of cpu, and lose pods",
    )
    assert "HighNodeUtilization" in fix


@pytest.mark.parametrize(
    "value", [None, 7, [], {"profiles": [7, {"plugins": 7}]}, {"metadata": 7, "spec": 7}, {"profiles": {"a": 1}}]
)
@pytest.mark.parametrize("kind", ["NodePool", "Node", "Pod", "DeschedulerPolicy"])
def test_objects_of_others_that_are_none_are_passed_over(kind, value):
    assert {each.check for each in found(nodes(), spread_out(), others=[(kind, value)])} <= {"consolidation"}


def waits(scheduler, **fields):
    return make_pod_info(f"waits-{scheduler}", cpu=1, scheduler_name=scheduler, **fields)


def test_a_misspelled_scheduler_whose_pods_nobody_tries():
    told, fix = only(found(nodes(), [*spread_out(), waits("bayplna")]))
    assert told == (
        "misspelled-scheduler",
        "bayplna",
        "nobody ever tried a pod of this scheduler; bayplan is meant",
        "1 pod waits, and no Event tells why",
    )
    assert "schedulerName: bayplan" in fix


@pytest.mark.parametrize(
    "pods",
    [
        [waits("default-scheduler")],
        [waits("volcano")],
        [waits("bayplna", conditions=[Condition("PodScheduled", "False", "Unschedulable")])],
        [waits("bayplna"), running("p", "n1", scheduler_name="bayplna")],
        [waits("bayplna", created=format_time(NOW - 59))],
    ],
    ids=["the default one", "another name", "it was tried", "one runs", "it came just now"],
)
def test_other_schedulers_are_not_taken_for_misspelled_ones(pods):
    assert not [
        each for each in found(nodes(), [*spread_out(), *pods], now=NOW) if each.check == "misspelled-scheduler"
    ]
