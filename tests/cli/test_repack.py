"""`bayplan simulate --repack`: what the pods that run would need if all were placed anew."""

import json

import pytest
from tests.cli.simulate_inputs import lists

SPREAD = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: LeastAllocated}}
"""


def node(name):
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": "4", "pods": "110"}}}


def running(name, on, cpu="1", owner="ReplicaSet", namespace="web", **spec):
    asks = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    owners = [{"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "o", "controller": True}]
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": name, "ownerReferences": owners},
        "spec": {"nodeName": on, "schedulerName": "default-scheduler", "containers": asks, **spec},
        "status": {"phase": "Running"},
    }


NINE = [f"n{number}" for number in range(9)]
CLUSTER = [
    *map(node, NINE),
    *(running(f"cni-{each}", each, owner="DaemonSet", cpu="100m", namespace="kube-system") for each in NINE),
    *(running(f"web-{each}", each, cpu="800m") for each in NINE),
]
"""One DaemonSet on all nodes, and nine pods, one on each, that two nodes or three would do for."""


def repack(simulate, objects, *options, **files):
    return simulate({"in": lists(*objects), **files}, "--cluster", "in", "--repack", *options)


def test_it_says_how_many_nodes_are_needed_and_which_pods_stay(simulate):
    code, out, err = repack(simulate, CLUSTER)
    assert (code, err) == (0, "")
    assert "Repack: 9 nodes in use before, 3 now; 6 could be emptied\n" in out
    assert "Repack: 9 pods placed anew, 0 found no node\n" in out
    assert "Repack: left where they are, of DaemonSets or static: 9\n" in out


def test_pods_that_did_not_run_before_are_told_apart(simulate):
    added = {**running("more", None, cpu="3", namespace="default"), "status": {}}
    _, out, _ = repack(simulate, CLUSTER, "--add", "more", "--as-scheduler", "bayplan", more=lists(added))
    assert "Repack: 9 nodes in use before, 3 now with 1 pod that did not run before; 6 could be emptied\n" in out


def test_each_configuration_is_told_by_itself(simulate):
    code, out, _ = repack(
        simulate,
        CLUSTER,
        "--config",
        "spread",
        "--config",
        "packed",
        spread=SPREAD,
        packed=SPREAD.replace("Least", "Most"),
    )
    assert code == 0
    assert [line.split()[-2:] for line in out.splitlines() if line.startswith("nodes in use")] == [["9", "3"]]
    assert "A: 9 nodes in use before, 9 now; 0 could be emptied\n" in out
    assert "B: 9 nodes in use before, 3 now; 6 could be emptied\n" in out


def test_what_stands_in_the_way_is_counted_by_reason(simulate):
    large = {"nodeSelector": {"disk": "nvme"}}
    objects = [
        *CLUSTER,
        running("a", "n0", **large),
        running("b", "n1", **large),
        running("lost", "elsewhere"),
        running("leaving", "n2"),
    ]
    objects[-1]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    code, out, _ = repack(simulate, objects, "-o", "json")
    found = json.loads(out)["repack"]
    assert code == 0
    assert found["unplaced"] == {"node(s) didn't match Pod's node affinity/selector": 2}
    assert found["staying"] == {"being deleted": 1, "of DaemonSets or static": 9, "on nodes not given": 1}
    assert (found["nodesInUseBefore"], found["placed"]) == (9, 9)


def test_a_node_is_not_emptied_of_a_pod_that_found_no_other(simulate):
    stuck = running("stuck", "n0", nodeSelector={"disk": "nvme"})
    objects = [node("n0"), node("n1"), stuck, running("web", "n1")]
    code, out, _ = repack(simulate, objects)
    # "web" may go to either: with "n0" it is one node that is in use, with "n1" there is "stuck" on the other.
    assert code == 0
    assert "Repack: 1 pod placed anew, 1 found no node\n" in out
    assert "Repack: 2 nodes in use before, 1 now; 1 could be emptied\n" in out
    code, out, _ = repack(simulate, [*objects[:3], running("web", "n1", nodeSelector={"kubernetes.io/os": "x"})])
    assert "Repack: 2 nodes in use before, 0 now; 0 could be emptied\n" in out
    code, out, _ = repack(simulate, [node("n0"), stuck])
    assert "Repack: 1 node in use before, 0 now; 0 could be emptied\n" in out


def test_only_leaves_the_others_where_they_are(simulate):
    ci = [running(f"ci-{each}", each, cpu="200m", namespace="ci", schedulerName="other") for each in NINE[:3]]
    for only in ("namespace=ci", "scheduler=other"):
        found = json.loads(repack(simulate, CLUSTER + ci, "--only", only, "-o", "json")[1])["repack"]
        assert (found["placed"], found["staying"]["left out by --only"]) == (3, 9)
    both = repack(simulate, CLUSTER + ci, "--only", "namespace=ci", "--only", "namespace=web", "-o", "json")[1]
    assert json.loads(both)["repack"]["placed"] == 12


def test_important_pods_are_placed_first(simulate):
    full = [node("n0"), running("low", "n0", cpu="3"), running("high", "elsewhere", cpu="3", priority=10)]
    found = json.loads(repack(simulate, [*full, node("elsewhere"), node("n0")][:-1], "-o", "json")[1])
    assert [pod["name"] for pod in found["pods"]] == ["high", "low"]


@pytest.mark.parametrize(
    ("only", "complaint"),
    [
        ("namespace=cii", "--only: no pod that runs has 'namespace=cii'\n"),
        ("ci", "--only: 'ci' is neither namespace=NAME nor scheduler=NAME\n"),
    ],
)
def test_what_names_no_pod_is_refused(simulate, only, complaint):
    assert repack(simulate, CLUSTER, "--only", only) == (2, "", complaint)


def test_only_without_repack_is_wrong_usage(simulate):
    code, _, err = simulate({"in": lists(*CLUSTER)}, "--cluster", "in", "--only", "namespace=ci")
    assert (code, "--only is about --repack" in err) == (2, True)


def test_a_pod_that_nothing_would_make_again_stays_where_it_is(simulate):
    alone = running("alone", "n1")
    del alone["metadata"]["ownerReferences"]
    _, out, _ = repack(simulate, [node("n0"), node("n1"), running("web", "n0"), alone])
    assert "Repack: 2 nodes in use before, 1 now; 1 could be emptied\n" in out
    assert "Repack: left where they are, without a controller: 1\n" in out
