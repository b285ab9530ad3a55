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
        (Changes(remove=["spaceship/x"]), "spaceship/x: cannot be read: No such file or directory"),
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
