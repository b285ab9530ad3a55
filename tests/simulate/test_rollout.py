"""The first step of a rollout: an added workload whose pods are all there, with another template."""

import json

import pytest
from tests.simulate.test_changes import LABELS, deployment, node, pod

from bayplan.config.load import default_configuration
from bayplan.simulate.changes import Changes
from bayplan.simulate.cluster import read_cluster
from bayplan.simulate.simulator import Simulator

VERSIONS = {"Job": "batch/v1", "CronJob": "batch/v1", "ReplicationController": "v1"}


def workload(kind, cpu=2, **spec):
    template = deployment()["spec"]["template"]
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    template = {**template, "spec": {**template["spec"], "containers": [container]}}
    body = {"selector": {"matchLabels": LABELS}, "template": template, **spec}
    if kind == "CronJob":
        body = {"jobTemplate": {"spec": {"template": template}}, **spec}
    return {
        "apiVersion": VERSIONS.get(kind, "apps/v1"),
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": body,
    }


def running(kind, *names):
    return [pod(name, on="n1", owner=(kind, "web")) for name in names]


@pytest.fixture
def add(tmp_path):
    def add(changed, *cluster):
        for name, objects in (("base.json", cluster), ("more.json", [changed])):
            (tmp_path / name).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        return read_cluster([str(tmp_path / "base.json")], Changes(add=[str(tmp_path / "more.json")]))

    return add


def tried(cluster):
    simulator = Simulator(default_configuration())
    simulator.add(cluster)
    return {each.name: each.attempts[-1].node for each in simulator.run().pods}


SURGING = {"replicas": 2}
NOT_SURGING = {"replicas": 2, "strategy": {"rollingUpdate": {"maxSurge": 0}}}
RECREATED = {"replicas": 2, "strategy": {"type": "Recreate"}}


@pytest.mark.parametrize(
    ("cpu", "spec", "node_of"),
    [
        (2, SURGING, {"web-1": "n1"}),
        (3, SURGING, {"web-1": None}),
        (3, NOT_SURGING, {"web-1": "n1"}),
        (4, NOT_SURGING, {"web-1": None}),
        (3, RECREATED, {"web-1": "n1"}),
    ],
)
def test_a_deployments_first_pod_of_a_changed_template_comes_before_or_after_an_old_one_leaves(add, cpu, spec, node_of):
    cluster = add(workload("Deployment", cpu, **spec), node("n1"), *running("Deployment", "web-a", "web-b"))
    assert tried(cluster) == node_of
    assert [each.name for each in cluster.making_way] == ([] if spec is SURGING else ["web-b"])
    assert len(cluster.pods) + len(cluster.making_way) == 3


@pytest.mark.parametrize("kind", ["StatefulSet", "ReplicaSet", "ReplicationController"])
def test_of_other_workloads_the_last_pod_leaves_first(add, kind):
    selector = LABELS if kind == "ReplicationController" else {"matchLabels": LABELS}
    changed = workload(kind, 3, replicas=2, selector=selector)
    cluster = add(changed, node("n1"), *running(kind, "web-0", "web-1"))
    assert tried(cluster) == {"web-1": "n1"}
    assert [each.name for each in cluster.making_way] == ["web-1"]
    assert cluster.notes == [f"{kind} default/web: a pod of its changed template is tried in the place of web-1"]


def test_a_stateful_sets_new_pod_keeps_the_claim_of_the_one_that_leaves(add):
    claims = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
    changed = workload("StatefulSet", 3, replicas=1, volumeClaimTemplates=claims)
    cluster = add(changed, node("n1"), *running("StatefulSet", "web-0"))
    ((new,),) = cluster.added
    assert [each.persistent_volume_claim.claim_name for each in new.pod.spec.volumes] == ["data-web-0"]


def test_all_pods_of_a_daemon_set_make_way_since_each_node_has_one(add):
    daemons = [pod(f"web-{name}", on=name, owner=("DaemonSet", "web")) for name in ("n1", "n2")]
    cluster = add(workload("DaemonSet", 4), node("n1"), node("n2", cpu=3), *daemons)
    assert tried(cluster) == {"web-n1": "n1", "web-n2": None}


@pytest.mark.parametrize(
    ("kind", "spec", "count"),
    [("Job", {}, 1), ("Job", {"suspend": True}, 0), ("CronJob", {}, 1), ("CronJob", {"suspend": True}, 0)],
)
def test_a_run_of_a_changed_job_is_tried_beside_those_that_run_unless_it_is_suspended(add, kind, spec, count):
    owner = "web-123" if kind == "CronJob" else "web"
    cluster = add(workload(kind, 3, **spec), node("n1"), pod("old", on="n1", owner=("Job", owner)))
    assert (len(tried(cluster)), len(cluster.pods)) == (count, 1 + count)


@pytest.mark.parametrize("replicas", [0, 1, 2, 3])
def test_a_deployment_tries_no_old_pod_and_as_many_new_ones_as_it_lacks(add, replicas):
    there = running("Deployment", "web-a", "web-b")
    cluster = add(workload("Deployment", 2, replicas=replicas), node("n1"), *there)
    assert len(tried(cluster)) == (replicas > 0)


def test_the_template_that_was_there_before_tells_whether_it_is_changed_and_the_pods_where_there_is_none(add):
    there = running("Deployment", "web-a")
    old, same = workload("Deployment", cpu="1"), workload("Deployment", cpu="1000m")
    injected = {**there[0], "spec": {**there[0]["spec"], "initContainers": [{"name": "proxy"}]}}
    for cluster in ([injected, old], there):
        found = add(same, node("n1"), *cluster)
        assert (tried(found), found.making_way) == ({}, [])
        assert found.notes == [
            "Deployment default/web: no pod is tried, as it makes no more; simulate --count 1 tries one"
        ]
    assert list(tried(add(same, node("n1"), injected))) == ["web-1"]


@pytest.mark.parametrize(
    "change",
    [
        {"nodeSelector": {"disk": "nvme"}},
        {"tolerations": [{"key": "gpu", "operator": "Exists"}]},
        {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]},
        {"containers": [{"name": "c", "image": "new", "resources": {"requests": {"cpu": 1}}}]},
        {"containers": [{"name": "c", "ports": [{"hostPort": 80}], "resources": {"requests": {"cpu": 1}}}]},
        {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]},
        {"schedulingGates": [{"name": "later"}]},
    ],
)
def test_whatever_decisions_read_of_a_template_makes_it_another(add, change):
    changed = workload("Deployment", 1)
    changed["spec"]["template"]["spec"] |= change
    cluster = add(changed, node("n1"), *running("Deployment", "web-a"))
    assert len(cluster.pods) == 2
    assert cluster.notes == ["Deployment default/web: a pod of its changed template is tried"]


def test_a_changed_template_that_the_api_server_would_refuse_is_skipped(add):
    changed = workload("Deployment", 1)
    changed["spec"]["template"]["spec"]["priorityClassName"] = "none"
    cluster = add(changed, node("n1"), *running("Deployment", "web-a"))
    assert [each.message.partition(":")[0] for each in cluster.skipped] == ["spec.template.spec.priorityClassName"]
