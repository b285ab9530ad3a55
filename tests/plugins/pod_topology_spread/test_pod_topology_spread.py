import math

import pytest
from tests.builders import make_node, make_pod, make_selector
from tests.plugins.pod_topology_spread.spreading import Spreading
from tests.plugins.scenes import WEB, hint, spread

from bayplan.api.meta_objects import ObjectMeta
from bayplan.api.objects import LabelSelector, Node, Pod, TopologySpreadConstraint
from bayplan.api.workload_objects import (
    ReplicaSet,
    ReplicationController,
    ReplicationControllerSpec,
    Service,
    ServiceSpec,
    StatefulSet,
    WorkloadSpec,
)
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import PodTopologySpreadArgs, PodTopologySpreadDefaulting
from bayplan.framework.cluster_event import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    ASSIGNED_POD_LABEL,
    NODE_ADD,
    NODE_DELETE,
    NODE_LABEL,
    NODE_TAINT,
    TARGET_POD_LABEL,
    TARGET_POD_TOLERATION,
)
from bayplan.framework.status import Code

NOT_MATCHED = "node(s) didn't match pod topology spread constraints"
NO_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def soft(key: str = "zone", selector: LabelSelector | None = WEB, **rest) -> TopologySpreadConstraint:
    return spread(key, selector, when_unsatisfiable="ScheduleAnyway", **rest)


def web(name: str = "incoming", **rest) -> Pod:
    return make_pod(name, uid=name, **{"labels": {"app": "web"}} | rest)


def node(name: str, zone: str | None = None, **labels: str) -> Node:
    zones = {} if zone is None else {"zone": zone, ZONE: zone}
    return make_node(name, labels=zones | {HOSTNAME: name} | labels)


def listing(*constraints: TopologySpreadConstraint) -> PodTopologySpreadArgs:
    return PodTopologySpreadArgs(tuple(constraints), PodTopologySpreadDefaulting.LIST)


def test_a_domain_that_would_get_too_far_ahead_is_rejected():
    scene = Spreading(node("n1", "a"), node("n2", "b"), web("p1", node="n1"))
    assert scene.rejected(web(spread=[spread()])) == {"n1": (Code.UNSCHEDULABLE, [NOT_MATCHED])}
    assert scene.rejected(web(spread=[spread(max_skew=2)])) == {}


def test_a_node_without_the_label_is_beyond_help():
    scene = Spreading(node("n1", "a"), node("n2"))
    rejected = scene.rejected(web(spread=[spread()]))
    assert rejected == {"n2": (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [NO_LABEL])}


def test_the_first_constraint_a_node_fails_is_named():
    scene = Spreading(node("n1", "a"), node("n2", "b", rack="1"), web("p1", node="n2"), web("p2", node="n2"))
    # Only n2 has both keys, so zone b is the emptiest there is and takes the pod; n1 lacks a rack.
    rejected = scene.rejected(web(spread=[spread(), spread("rack")]))
    assert rejected == {"n1": (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [NO_LABEL])}
    rejected = scene.rejected(web(spread=[spread(min_domains=2), spread("missing")]))
    assert {name: reasons for name, (_, reasons) in rejected.items()} == {"n1": [NO_LABEL], "n2": [NO_LABEL]}


def test_a_pod_that_does_not_match_its_own_selector_adds_nothing():
    scene = Spreading(node("n1", "a"), node("n2", "b"), web("p1", node="n1"))
    assert scene.rejected(make_pod(spread=[spread()])) == {}


@pytest.mark.parametrize("other", [{"deleting": True}, {"namespace": "other"}, {"labels": {"app": "db"}}])
def test_pods_that_are_going_or_strange_do_not_count(other):
    scene = Spreading(node("n1", "a"), node("n2", "b"), web("p1", node="n1", **other))
    assert scene.rejected(web(spread=[spread()])) == {}


def test_too_few_domains_count_as_an_empty_one():
    scene = Spreading(node("n1", "a"), web("p1", node="n1"))
    assert scene.rejected(web(spread=[spread()])) == {}
    assert list(scene.rejected(web(spread=[spread(min_domains=2)]))) == ["n1"]


def test_an_empty_selector_counts_nobody_but_the_pod_itself_and_no_selector_not_even_that():
    scene = Spreading(node("n1", "a"), web("p1", node="n1"), web("p2", node="n1"))
    assert scene.rejected(web(spread=[spread(selector=LabelSelector(), min_domains=2)])) == {}
    assert list(scene.rejected(web(spread=[spread(selector=LabelSelector(), max_skew=0)]))) == ["n1"]
    assert scene.rejected(web(spread=[spread(selector=None, max_skew=0)])) == {}


def test_values_of_match_label_keys_are_part_of_the_selector():
    old, new = {"app": "web", "rev": "1"}, {"app": "web", "rev": "2"}
    scene = Spreading(node("n1", "a"), node("n2", "b"), web("p1", node="n1", labels=old))
    constraint = spread(match_label_keys=["rev", "missing"])
    assert scene.rejected(web(labels=new, spread=[constraint])) == {}
    assert list(scene.rejected(web(labels=old, spread=[constraint]))) == ["n1"]


def test_nodes_the_pod_cannot_use_are_no_domains_unless_affinity_is_ignored():
    scene = Spreading(node("n1", "a", disk="ssd"), node("n2", "b"), web("p1", node="n1"))
    pinned = {"node_selector": {"disk": "ssd"}}
    assert scene.rejected(web(spread=[spread()], **pinned)) == {}
    assert list(scene.rejected(web(spread=[spread(node_affinity_policy="Ignore")], **pinned))) == ["n1"]


def test_tainted_nodes_are_domains_unless_taints_are_honoured():
    tainted = make_node("n2", labels={"zone": "b"}, taints=["k:NoSchedule"])
    scene = Spreading(node("n1", "a"), tainted, web("p1", node="n1"))
    assert list(scene.rejected(web(spread=[spread()]))) == ["n1"]
    honours = [spread(node_taints_policy="Honor")]
    assert scene.rejected(web(spread=honours)) == {}
    assert list(scene.rejected(web(spread=honours, tolerations=["k:NoSchedule"]))) == ["n1"]


def test_without_hard_constraints_the_filter_is_skipped_and_without_soft_ones_the_score():
    scene = Spreading(node("n1", "a"))
    assert scene.pre_filter(web(spread=[soft()])) is Code.SKIP
    assert scene.pre_filter(web()) is Code.SKIP
    assert scene.pre_filter(web(spread=[spread()])) is Code.SUCCESS
    assert scene.ranked(web(spread=[spread()])) is None


def test_a_hard_selector_nobody_can_read_rejects_the_pod():
    scene = Spreading(node("n1", "a"))
    broken = spread(selector=make_selector("app Near web"))
    assert scene.pre_filter(web(spread=[broken])) is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_absurd_numbers_are_survived():
    scene = Spreading(node("n1", "a"), node("n2", "b"), web("p1", node="n1"))
    absurd = [spread(max_skew=10**30, min_domains=10**30), spread(max_skew=-(10**30), min_domains=-5)]
    assert scene.rejected(web(spread=absurd)).keys() == {"n1", "n2"}
    scene.ranked(web(spread=[soft(max_skew=10**30)]))


def test_fewer_matching_pods_score_higher():
    scene = Spreading(node("n1", "a"), node("n2", "a"), node("n3", "b"), *(web(f"p{i}", node="n1") for i in range(3)))
    high = round(3 * math.log(4))
    assert scene.ranked(web(spread=[soft()])) == {"n1": 0, "n2": 0, "n3": 100 * high // high}
    per_host = scene.ranked(web(spread=[soft(HOSTNAME)]))
    assert per_host == {"n1": 0, "n2": 100, "n3": 100}


def test_without_matching_pods_all_nodes_score_full():
    scene = Spreading(node("n1", "a"), node("n2", "b"))
    assert scene.ranked(web(spread=[soft()])) == {"n1": 100, "n2": 100}


def test_nodes_without_a_key_of_an_explicit_constraint_score_nothing():
    scene = Spreading(node("n1", "a"), node("n2"))
    assert scene.ranked(web(spread=[soft()])) == {"n1": 100, "n2": 0}


def service(name: str = "web", selector: dict[str, str] | None = None) -> Service:
    return Service(ObjectMeta(name=name, namespace="default"), ServiceSpec(selector or {"app": "web"}))


def crowded(*, args: PodTopologySpreadArgs | None = None) -> Spreading:
    """Two nodes in two zones and one in none; all pods of the service are on the first."""
    pods = [web(f"p{i}", node="n1") for i in range(4)]
    return Spreading(node("n1", "a"), node("n2", "b"), node("n3"), *pods, args=args)


def test_by_default_pods_of_a_service_spread_and_nodes_without_a_zone_take_part():
    scene = crowded()
    assert scene.ranked(web()) is None
    scene.listers.of(Service).set(service())
    ranked = scene.ranked(web())
    assert ranked is not None
    assert ranked["n1"] < ranked["n2"] < ranked["n3"]


@pytest.mark.parametrize(
    ("kind", "owner"),
    [
        (ReplicationController, ReplicationControllerSpec({"app": "web"})),
        (ReplicaSet, WorkloadSpec(WEB)),
        (StatefulSet, WorkloadSpec(make_selector("app In web"))),
    ],
)
def test_by_default_pods_of_an_owner_spread(kind, owner):
    scene = crowded()
    pod = web(owner=f"{kind.__name__}/w")
    assert scene.ranked(pod) is None
    scene.listers.of(kind).set(kind(ObjectMeta(name="w", namespace="default"), owner))
    ranked = scene.ranked(pod)
    assert ranked is not None
    assert ranked["n1"] < ranked["n2"]


def test_services_of_other_pods_and_other_namespaces_spread_nobody():
    scene = crowded()
    lister = scene.listers.of(Service)
    lister.set(service("db", {"app": "db"}))
    lister.set(Service(ObjectMeta(name="bare", namespace="default"), ServiceSpec(None)))
    lister.set(Service(ObjectMeta(name="far", namespace="other"), ServiceSpec({"app": "web"})))
    assert scene.ranked(web()) is None


def test_listed_defaults_filter_and_leave_nodes_without_the_key_out_of_the_score():
    scene = crowded(args=listing(spread(selector=None), soft(selector=None)))
    assert scene.pre_filter(web()) is Code.SKIP
    scene.listers.of(Service).set(service())
    assert scene.rejected(web()) == {
        "n1": (Code.UNSCHEDULABLE, [NOT_MATCHED]),
        "n3": (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [NO_LABEL]),
    }
    assert scene.ranked(web()) == {"n1": 0, "n2": 100, "n3": 0}


def test_a_pod_with_constraints_of_its_own_gets_no_defaults():
    scene = crowded(args=listing(spread(selector=None)))
    scene.listers.of(Service).set(service())
    assert scene.pre_filter(web(spread=[soft()])) is Code.SKIP


def test_without_defaults_nothing_is_looked_up():
    assert list(Spreading(args=listing()).listers.wanted()) == []
    assert set(Spreading().listers.wanted()) == {Service, ReplicationController, ReplicaSet, StatefulSet}


def test_a_signature_tells_apart_what_spreading_treats_differently():
    scene = Spreading()

    def sign(**pod):
        return scene.plugin.sign_pod(PodInfo(web(**{"spread": [spread()]} | pod)))

    assert sign() == sign(name="another", labels={"app": "web", "pod-index": "1"})
    honours = [spread(node_taints_policy="Honor")]
    assert sign(tolerations=["k"]) == sign()
    assert sign(spread=honours, tolerations=["k"]) != sign(spread=honours)
    assert sign(node_selector={"a": "b"}) != sign()
    assert sign(labels={"app": "db"}) != sign()
    assert sign(namespace="other") != sign()
    assert sign(spread=[soft()]) != sign()
    assert sign(spread=[spread(match_label_keys=["app"])]) == sign()


def test_a_new_service_changes_signatures():
    scene = Spreading()
    pod = PodInfo(web())
    before = scene.plugin.sign_inputs(pod), scene.plugin.sign_pod(pod)
    scene.listers.of(Service).set(service())
    after = scene.plugin.sign_inputs(pod), scene.plugin.sign_pod(pod)
    assert before[0] != after[0]
    assert before[1] != after[1]


WAITING = web(spread=[spread()])
HONOURING = web(spread=[spread(node_taints_policy="Honor")])
OTHER = make_pod("other", uid="other", labels={"app": "db"})


@pytest.mark.parametrize(
    ("event", "old", "new", "expected"),
    [
        (ASSIGNED_POD_ADD, None, web("p", node="n1"), "Queue"),
        (ASSIGNED_POD_ADD, None, web("p"), "Queue"),
        (ASSIGNED_POD_ADD, None, web("p", node="n1", namespace="other"), "QueueSkip"),
        (ASSIGNED_POD_ADD, None, OTHER, "QueueSkip"),
        (ASSIGNED_POD_DELETE, web("p", node="n1"), None, "Queue"),
        (ASSIGNED_POD_DELETE, OTHER, None, "QueueSkip"),
        (ASSIGNED_POD_LABEL, web("p", node="n1"), web("p", node="n1", labels={"app": "db"}), "Queue"),
        (ASSIGNED_POD_LABEL, web("p", node="n1"), web("p", node="n1", labels={"app": "web", "x": "y"}), "QueueSkip"),
        (ASSIGNED_POD_LABEL, web("p", node="n1"), web("p", node="n1"), "QueueSkip"),
        (TARGET_POD_LABEL, WAITING, web(labels={"app": "db"}), "Queue"),
        (TARGET_POD_LABEL, WAITING, web(labels={"app": "web", "x": "y"}), "QueueSkip"),
        (TARGET_POD_TOLERATION, WAITING, web(tolerations=["k"]), "QueueSkip"),
        (NODE_ADD, None, node("n1", "a"), "Queue"),
        (NODE_ADD, None, node("n1"), "QueueSkip"),
        (NODE_DELETE, node("n1", "a"), None, "Queue"),
        (NODE_DELETE, node("n1"), None, "QueueSkip"),
        (NODE_LABEL, node("n1"), node("n1", "a"), "Queue"),
        (NODE_LABEL, node("n1", "a"), node("n1"), "Queue"),
        (NODE_LABEL, node("n1", "a"), node("n1", "b"), "Queue"),
        (NODE_LABEL, node("n1", "a"), node("n1", "a", x="y"), "QueueSkip"),
        (NODE_LABEL, node("n1"), node("n1", x="y"), "QueueSkip"),
        (NODE_TAINT, node("n1", "a"), make_node("n1", labels={"zone": "a"}, taints=["k:NoSchedule"]), "Queue"),
        (NODE_TAINT, node("n1"), make_node("n1", taints=["k:NoSchedule"]), "QueueSkip"),
    ],
)
def test_events_that_may_help_wake_the_pod(event, old, new, expected):
    assert hint(Spreading().plugin, event, WAITING, old, new) == expected


def test_a_new_toleration_wakes_a_pod_that_honours_taints():
    old, new = HONOURING, web(spread=[spread(node_taints_policy="Honor")], tolerations=["k"])
    assert hint(Spreading().plugin, TARGET_POD_TOLERATION, HONOURING, old, new) == "Queue"


def test_what_cannot_be_judged_wakes_the_pod():
    plugin = Spreading().plugin
    assert hint(plugin, ASSIGNED_POD_ADD, WAITING) == "Queue"
    assert hint(plugin, NODE_ADD, WAITING) == "Queue"
