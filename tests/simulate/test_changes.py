"""What a simulation makes of objects that come and go, and of nodes that are drained."""

import json

import pytest

from bayplan.config.load import default_configuration
from bayplan.simulate.changes import Changes
from bayplan.simulate.cluster import read_cluster
from bayplan.simulate.documents import ClusterFileError
from bayplan.simulate.drain import drain_lines
from bayplan.simulate.simulator import Simulator

LABELS = {"app": "web"}


def node(name, cpu=4):
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu, "pods": 110}}}


def pod(name, *, on="", owner=None, labels=LABELS, namespace="default"):
    metadata = {"name": name, "namespace": namespace, "uid": name, "resourceVersion": "5", "labels": labels}
    if owner is not None:
        metadata["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "controller": True}]
    spec = {
        "schedulerName": "bayplan",
        "priority": 0,
        "nodeName": on,
        "containers": [{"resources": {"requests": {"cpu": 1}}}],
    }
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running" if on else "Pending"}}


def deployment(name="web", replicas=1):
    template = {
        "metadata": {"labels": LABELS},
        "spec": {"schedulerName": "bayplan", "containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def write(tmp_path):
    def write(name, *objects):
        file = tmp_path / name
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        return str(file)

    return write


def placed(cluster):
    simulator = Simulator(default_configuration())
    simulator.add(cluster)
    return {each.name: each.attempts[-1].node for each in simulator.run().pods}


def names(cluster):
    return sorted(each.name for each in cluster.pods)


def test_what_is_added_comes_beside_the_cluster_or_in_the_place_of_its_namesakes(write):
    base = write("base.json", node("n1"), deployment(replicas=1), pod("p"))
    more = write("more.json", node("n1", cpu=64), node("n2"), deployment(replicas=3), pod("p", on="n2"))
    cluster = read_cluster([base], Changes(add=[more]))
    assert [each.metadata.name for each in cluster.nodes] == ["n1", "n2"]
    assert cluster.nodes[0].status.allocatable["cpu"] == 64
    assert names(cluster) == ["p", "web-1", "web-2", "web-3"]
    assert cluster.skipped == []
    assert sorted([each.name for each in pods] for pods in cluster.added) == [["p"], ["web-1", "web-2", "web-3"]]


@pytest.mark.parametrize(
    ("removed", "left"),
    [
        ("pod/a", ["b", "c", "web-1", "web-2"]),
        ("Pod/default/b", ["a", "c", "web-1", "web-2"]),
        ("po/other/c", ["a", "b", "web-1", "web-2"]),
        ("deployment/web", ["b", "c"]),
        ("deployments/default/web", ["b", "c"]),
    ],
)
def test_what_is_removed_goes_with_the_pods_that_it_controls(write, removed, left):
    labels = {**LABELS, "pod-template-hash": "1f"}
    base = write(
        "base.json",
        node("n1"),
        deployment(replicas=3),
        pod("a", on="n1", owner=("ReplicaSet", "web-1f"), labels=labels),
        pod("b", on="n1"),
        pod("c", namespace="other"),
    )
    if removed.startswith(("pod/a", "po", "Pod")):
        # What is missing of the Deployment is made: one pod more where one of its own is removed.
        left = [*left, "web-3"] if removed == "pod/a" else left
    assert names(read_cluster([base], Changes(remove=[removed]))) == left


def test_a_file_names_what_is_to_be_removed(write):
    base = write("base.json", node("n1"), node("n2"), pod("a"), pod("b"))
    gone = write("gone.json", node("n2"), pod("b"))
    cluster = read_cluster([base], Changes(remove=[gone]))
    assert ([each.metadata.name for each in cluster.nodes], names(cluster)) == (["n1"], ["a"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (Changes(remove=["pod/x"]), "--remove: there is no Pod 'x' in namespace default"),
        (Changes(remove=["node/x"]), "--remove: there is no Node 'x'"),
        (Changes(remove=["deploy/shop/web"]), "--remove: there is no Deployment 'web' in namespace shop"),
        (
            Changes(remove=["spaceship/x"]),
            '--remove: "spaceship/x": neither a file nor KIND/NAME of a kind that is read',
        ),
        (Changes(drain=["n9"]), "--drain: there is no Node 'n9'"),
    ],
)
def test_what_is_not_there_can_be_neither_removed_nor_drained(write, changes, message):
    base = write("base.json", node("n1"))
    with pytest.raises(ClusterFileError) as caught:
        read_cluster([base], changes)
    assert str(caught.value) == message


def test_a_drained_nodes_pods_are_scheduled_elsewhere_but_for_daemons_and_static_pods(write):
    base = write(
        "base.json",
        node("n1"),
        node("n2"),
        pod("web", on="n1", owner=("ReplicaSet", "web")),
        pod("agent", on="n1", owner=("DaemonSet", "agent")),
        pod("static", on="n1", owner=("Node", "n1")),
        pod("waits"),
    )
    cluster = read_cluster([base], Changes(drain=["n1"]))
    assert placed(cluster) == {"web": "n2", "waits": "n2"}
    (told,) = cluster.drained
    assert list(drain_lines(told)) == ["n1: 1 pod evicted, 2 of DaemonSets or static stay"]
    assert sorted(each.name for each in cluster.pods if each.pod.spec.node_name) == ["agent", "static"]


def test_a_drain_tells_of_budgets_that_hold_it_up_and_of_pods_that_nothing_makes_again(write):
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "pdb"},
        "spec": {"selector": {"matchLabels": LABELS}},
        "status": {"disruptionsAllowed": 1},
    }
    pods = [pod(name, on="n1", owner=("ReplicaSet", "web")) for name in "ab"]
    base = write("base.json", node("n1"), node("n2"), budget, *pods, pod("alone", on="n1", labels={}))
    (told,) = read_cluster([base], Changes(drain=["node/n1"])).drained
    assert list(drain_lines(told)) == [
        "n1: 3 pods evicted",
        "n1: PodDisruptionBudget default/pdb allows 1 of 2 evictions at once: a drain waits for it",
        "n1: default/alone has no controller: a drain wants --force, and nothing would make it again",
    ]


def test_the_pods_of_a_removed_node_go_elsewhere_and_its_daemons_with_it(write):
    base = write(
        "base.json",
        node("n1"),
        node("n2"),
        pod("web", on="n1", owner=("ReplicaSet", "web")),
        pod("agent", on="n1", owner=("DaemonSet", "agent")),
    )
    cluster = read_cluster([base], Changes(remove=["node/n1"]))
    assert placed(cluster) == {"web": "n2"}
    assert names(cluster) == ["web"]


def budget(name="pdb", *, labels=LABELS, allowed=0, spec=None, **status):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, **(spec or {})},
        "status": {"disruptionsAllowed": allowed, **status},
    }


def is_ready(pod, *, ready=True, phase="Running"):
    return {**pod, "status": {"phase": phase, "conditions": [{"type": "Ready", "status": str(ready)}]}}


@pytest.mark.parametrize(
    ("unready", "told"),
    [
        (budget(), True),
        (budget(spec={"unhealthyPodEvictionPolicy": "AlwaysAllow"}), False),
        (budget(currentHealthy=1, desiredHealthy=1), False),
        (budget(currentHealthy=1, desiredHealthy=2), True),
        (budget(currentHealthy=0, desiredHealthy=0), True),
    ],
)
def test_a_pod_that_is_not_ready_needs_no_leave_where_the_budget_says_so(write, unready, told):
    web = pod("web", on="n1", owner=("ReplicaSet", "web"))
    (drained,) = read_cluster(
        [write("a.json", node("n1"), unready, is_ready(web, ready=False))], Changes(drain=["n1"])
    ).drained
    assert bool(drained.budgets) is told
    (drained,) = read_cluster([write("b.json", node("n1"), unready, is_ready(web))], Changes(drain=["n1"])).drained
    assert [each.name for each in drained.budgets] == ["default/pdb"]


def test_a_pod_that_never_started_needs_no_leave_to_be_evicted(write):
    web = is_ready(pod("web", on="n1", owner=("ReplicaSet", "web")), ready=False, phase="Pending")
    (drained,) = read_cluster([write("a.json", node("n1"), budget(), web)], Changes(drain=["n1"])).drained
    assert (drained.evicted, drained.budgets) == (1, [])


def test_a_pod_of_two_budgets_is_told_since_the_api_server_does_not_evict_it(write):
    pods = [pod(name, on="n1", owner=("ReplicaSet", "web")) for name in "abc"]
    base = write("a.json", node("n1"), budget("x", allowed=9), budget("y", allowed=9), *pods)
    (drained,) = read_cluster([base], Changes(drain=["n1"])).drained
    assert list(drain_lines(drained)) == [
        "n1: 3 pods evicted",
        "n1: default/a and 2 others are of more than one PodDisruptionBudget: the API server refuses to evict",
    ]


def test_nodes_that_are_drained_together_share_what_a_budget_allows(write):
    pods = [pod(f"web-{at}", on=at, owner=("ReplicaSet", "web")) for at in ("n1", "n2")]
    base = write("a.json", node("n1"), node("n2"), node("n3"), budget(allowed=1), *pods)
    first, second = read_cluster([base], Changes(drain=["n1", "n2"])).drained
    assert (first.budgets, [each.disruptions_allowed for each in second.budgets]) == ([], [0])


def test_pods_of_a_drained_node_that_are_being_deleted_stay_in_the_sums_and_free_the_node(write):
    leaving = pod("old", on="n1", owner=("ReplicaSet", "web"))
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    base = write("a.json", node("n1"), node("n2"), leaving, pod("web", on="n1", owner=("ReplicaSet", "web")))
    for changes in (Changes(drain=["n1"]), Changes(remove=["node/n1"])):
        simulator = Simulator(default_configuration())
        simulator.add(read_cluster([base], changes))
        summary = simulator.run().summary
        assert (summary.pods, summary.finished, summary.running, summary.scheduled) == (2, 1, 0, 1)
        assert summary.on_unknown_nodes == 0


def test_a_removed_namespace_goes_with_all_that_is_in_it(write):
    shop = {"metadata": {"name": "web", "namespace": "shop"}}
    base = write(
        "base.json",
        node("n1"),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
        {**deployment(replicas=2), **shop},
        pod("a", namespace="shop"),
        pod("b"),
        {"apiVersion": "v1", "kind": "Service", **shop, "spec": {"selector": LABELS}},
    )
    cluster = read_cluster([base], Changes(remove=["ns/shop"]))
    assert (names(cluster), cluster.looked_up) == (["b"], [])


def test_a_namespace_that_no_file_describes_is_removed_with_its_pods(write):
    base = write("base.json", node("n1"), pod("a", namespace="shop"), pod("b"))
    assert names(read_cluster([base], Changes(remove=["ns/shop"]))) == ["b"]
    with pytest.raises(ClusterFileError, match="--remove: there is no Namespace 'sho'"):
        read_cluster([base], Changes(remove=["ns/sho"]))


@pytest.mark.parametrize("replicas", [0, 2])
def test_an_added_workload_that_makes_no_more_pods_says_all_the_same_what_they_are_like(write, replicas):
    there = [pod(f"web-{n}", on="n1", owner=("Deployment", "web")) for n in range(replicas)]
    base, more = write("base.json", node("n1"), *there), write("more.json", deployment(replicas=replicas))
    cluster = read_cluster([base], Changes(add=[more]))
    ((sample,),) = cluster.added
    assert len(cluster.pods) == replicas
    assert sample.pod.metadata.labels.items() >= LABELS.items()
    assert sample.requests.amounts == {"cpu": 1000}


@pytest.mark.parametrize(
    "spec",
    [
        {"kind": "Job", "spec": {"suspend": True}},
        {"kind": "Job", "spec": {}, "status": {"conditions": [{"type": "Complete", "status": "True"}]}},
        {"kind": "CronJob", "spec": {"suspend": True}},
        {"kind": "StatefulSet", "spec": {"replicas": 0, "selector": {"matchLabels": LABELS}}},
        {"kind": "ReplicaSet", "spec": {"replicas": 0, "selector": {"matchLabels": LABELS}}},
    ],
)
def test_what_is_suspended_done_or_has_no_replicas_says_what_its_pods_would_be_like(write, spec):
    template = deployment()["spec"]["template"]
    body = {"template": template, **spec["spec"]}
    if spec["kind"] == "CronJob":
        body = {"suspend": True, "jobTemplate": {"spec": {"template": template, "suspend": True}}}
    version = "apps/v1" if spec["kind"].endswith("Set") else "batch/v1"
    more = write("more.json", {"apiVersion": version, "metadata": {"name": "w"}, **spec, "spec": body})
    cluster = read_cluster([write("base.json", node("n1"))], Changes(add=[more]))
    assert (cluster.pods, [len(each) for each in cluster.added]) == ([], [1])
