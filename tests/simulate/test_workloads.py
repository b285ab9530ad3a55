"""Workloads in files become the pods that their controllers would still make."""

import json
from collections import Counter

import pytest
from tests.simulate.workload_objects import LABELS, TEMPLATE, node, owner, pod, workload

from bayplan.api.storage_objects import PersistentVolumeClaim
from bayplan.api.workload_objects import ReplicaSet
from bayplan.config.load import default_configuration
from bayplan.simulate.cluster import read_cluster
from bayplan.simulate.documents import ClusterFileError
from bayplan.simulate.simulator import Simulator


@pytest.fixture
def read(tmp_path):
    def read(*objects):
        file = tmp_path / "cluster.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        return read_cluster([str(file)])

    return read


def names(cluster):
    return [each.name for each in cluster.pods]


def error_of(read, *objects):
    with pytest.raises(ClusterFileError) as caught:
        read(*objects)
    return str(caught.value).partition(": ")[2]


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "ReplicationController"])
def test_replicas_are_numbered_pods(read, kind):
    cluster = read(workload(kind, replicas=3))
    assert names(cluster) == ["web-1", "web-2", "web-3"]
    assert {each.requests.amounts["cpu"] for each in cluster.pods} == {500}
    assert {each.pod.spec.scheduler_name for each in cluster.pods} == {"bayplan"}
    assert len({each.uid for each in cluster.pods}) == 3


def test_without_replicas_there_is_one(read):
    assert names(read(workload("Deployment"))) == ["web-1"]
    assert names(read(workload("Deployment", replicas=0))) == []


def test_a_deployments_pods_are_owned_by_its_replica_set_which_default_spreading_looks_up(read):
    cluster = read(workload("Deployment", replicas=2))
    (replica_set,) = (each for each in cluster.looked_up if isinstance(each, ReplicaSet))
    digest = replica_set.metadata.name.removeprefix("web-")
    assert replica_set.spec.selector.match_labels == {**LABELS, "pod-template-hash": digest}
    for each in cluster.pods:
        (reference,) = each.pod.metadata.owner_references
        assert (reference.kind, reference.name, reference.controller) == ("ReplicaSet", f"web-{digest}", True)
        assert each.pod.metadata.labels == {**LABELS, "pod-template-hash": digest}


def test_the_same_file_gives_the_same_names_and_hashes(read):
    def written():
        return [(each.key, each.uid, each.pod.metadata.owner_references) for each in read(*objects).pods]

    objects = [workload("Deployment", replicas=2), workload("StatefulSet", "db", replicas=2)]
    assert written() == written()


def test_match_label_keys_see_the_hash_of_the_template(read):
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": LABELS},
        "matchLabelKeys": ["pod-template-hash"],
    }
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "topologySpreadConstraints": [spread]}}
    (made,) = read(workload("Deployment", template=template)).pods
    (constraint,) = made.pod.spec.topology_spread_constraints
    (added,) = constraint.label_selector.match_expressions
    assert (added.key, added.values) == ("pod-template-hash", [made.pod.metadata.labels["pod-template-hash"]])


def test_a_stateful_sets_pods_have_ordinals_labels_and_claims(read):
    claims = [{"metadata": {"name": "data"}, "spec": {"storageClassName": "fast"}}]
    cluster = read(workload("StatefulSet", "db", replicas=2, ordinals={"start": 5}, volumeClaimTemplates=claims))
    assert names(cluster) == ["db-5", "db-6"]
    assert [each.pod.metadata.labels["apps.kubernetes.io/pod-index"] for each in cluster.pods] == ["5", "6"]
    assert [each.pod.spec.volumes[0].persistent_volume_claim.claim_name for each in cluster.pods] == [
        "data-db-5",
        "data-db-6",
    ]
    made = [each for each in cluster.looked_up if isinstance(each, PersistentVolumeClaim)]
    assert [(each.metadata.name, each.spec.storage_class_name) for each in made] == [
        ("data-db-5", "fast"),
        ("data-db-6", "fast"),
    ]


def test_a_claim_that_is_there_is_not_made_again(read):
    there = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data-db-0"}}
    cluster = read(there, workload("StatefulSet", "db", volumeClaimTemplates=[{"metadata": {"name": "data"}}]))
    assert [each.metadata.name for each in cluster.looked_up if isinstance(each, PersistentVolumeClaim)] == [
        "data-db-0"
    ]


@pytest.mark.parametrize(
    ("spec", "status", "count"),
    [
        ({}, {}, 1),
        ({"parallelism": 3}, {}, 3),
        ({"parallelism": 3}, {"succeeded": 1}, 0),
        ({"completions": 5}, {}, 1),
        ({"parallelism": 3, "completions": 5}, {}, 3),
        ({"parallelism": 9, "completions": 5}, {}, 5),
        ({"parallelism": 3, "completions": 5}, {"succeeded": 4}, 1),
        ({"parallelism": 0}, {}, 0),
        ({"parallelism": 3, "suspend": True}, {}, 0),
        ({"parallelism": 3}, {"conditions": [{"type": "Complete", "status": "True"}]}, 0),
        ({"parallelism": 3}, {"conditions": [{"type": "Failed", "status": "True"}]}, 0),
    ],
)
def test_a_jobs_pods_are_those_that_run_at_the_same_time(read, spec, status, count):
    cluster = read(workload("Job", "work", status=status, **spec))
    assert names(cluster) == [f"work-{number}" for number in range(1, count + 1)]


def test_an_indexed_job_that_says_neither_how_many_nor_at_a_time_makes_one_pod(read):
    assert names(read(workload("Job", "work", completionMode="Indexed"))) == ["work-0"]


def test_an_indexed_job_makes_the_indexes_that_are_neither_completed_nor_running(read):
    index = "batch.kubernetes.io/job-completion-index"
    job = workload(
        "Job",
        "work",
        parallelism=4,
        completions=9,
        completionMode="Indexed",
        status={"succeeded": 4, "completedIndexes": "0,2-4"},
    )
    cluster = read(job, pod("work-1-abcde", owner("Job", "work"), labels={index: "1"}))
    assert names(cluster) == ["work-1-abcde", "work-5", "work-6", "work-7"]
    assert [each.pod.metadata.labels[index] for each in cluster.pods] == ["1", "5", "6", "7"]


def test_a_cron_job_runs_once(read):
    cron = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly"},
        "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"parallelism": 2, "template": TEMPLATE}}},
    }
    assert names(read(cron)) == ["nightly-1-1", "nightly-1-2"]
    assert names(read({**cron, "spec": {**cron["spec"], "suspend": True}})) == []
    ran = workload("Job", "nightly-29", owner=owner("CronJob", "nightly"), status={"succeeded": 1})
    assert names(read(cron, ran)) == []
    assert names(read(cron, pod("nightly-29-x", owner("Job", "nightly-29"), phase="Succeeded"))) == ["nightly-29-x"]


def test_a_daemon_set_has_a_pod_for_every_node_that_it_may_run_on_kept_there_by_name(read):
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "nodeSelector": {"pool": "a"}}}
    nodes = [
        node("n1", labels={"pool": "a"}),
        node("n2", labels={"pool": "b"}),
        node("n3", labels={"pool": "a"}, taints=[{"key": "dedicated", "effect": "NoSchedule"}]),
        node("n4", labels={"pool": "a"}, taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]),
        node("n5", labels={"pool": "a"}, taints=[{"key": "soft", "effect": "PreferNoSchedule"}]),
    ]
    cluster = read(*nodes, workload("DaemonSet", "agent", template=template))
    assert names(cluster) == ["agent-n1", "agent-n4", "agent-n5"]
    simulator = Simulator(default_configuration())
    simulator.add(cluster)
    placed = {each.name: each.attempts[-1].node for each in simulator.run().pods}
    assert placed == {"agent-n1": "n1", "agent-n4": "n4", "agent-n5": "n5"}


def test_a_daemon_set_makes_no_pod_for_a_node_that_has_its_pod(read):
    running = pod("agent-abcde", owner("DaemonSet", "agent"), node="n1")
    assert names(read(node("n1"), node("n2"), workload("DaemonSet", "agent"), running)) == ["agent-abcde", "agent-n2"]


def test_a_pod_template_is_one_pod(read):
    template = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "trial"}, "template": TEMPLATE}
    assert names(read(template)) == ["trial"]


def test_pods_that_are_there_are_not_counted_twice(read):
    hashed = {**LABELS, "pod-template-hash": "5c9f"}
    replica_set = workload("ReplicaSet", "web-5c9f", replicas=3, owner=owner("Deployment", "web"))
    old = workload("ReplicaSet", "web-1111", replicas=0, owner=owner("Deployment", "web"))
    pods = [pod(f"web-5c9f-{suffix}", owner("ReplicaSet", "web-5c9f"), labels=hashed) for suffix in "abc"]
    deployment = workload("Deployment", replicas=3)
    everything = [deployment, replica_set, old, *pods]
    assert len(read(*everything).pods) == 3
    # As `kubectl get deployments,pods` gives them: the name of the ReplicaSet tells whose it is.
    assert len(read(deployment, *pods).pods) == 3
    assert len(read(replica_set, *pods[:1]).pods) == 3
    ended = pod("web-5c9f-d", owner("ReplicaSet", "web-5c9f"), labels=hashed, phase="Failed")
    leaving = pod(
        "web-5c9f-e", owner("ReplicaSet", "web-5c9f"), labels=hashed, deletionTimestamp="2026-01-01T00:00:00Z"
    )
    assert Counter(each.name.startswith("web-5c9f") for each in read(deployment, pods[0], ended, leaving).pods) == {
        True: 3,
        False: 2,
    }


def test_pods_that_a_deployment_still_lacks_go_into_its_newest_replica_set(read):
    labels = {**LABELS, "pod-template-hash": "5c9f"}
    template = {**TEMPLATE, "metadata": {"labels": labels}}
    there = workload("ReplicaSet", "web-5c9f", template=template, owner=owner("Deployment", "web"))
    there["metadata"] |= {"labels": labels, "uid": "u1"}
    made = read(workload("Deployment", replicas=2), there).pods[0].pod.metadata
    assert (made.owner_references[0].uid, made.labels["pod-template-hash"]) == ("u1", "5c9f")


def test_names_that_other_pods_have_are_left_out(read):
    cluster = read(workload("Deployment", replicas=2), workload("StatefulSet", replicas=2))
    assert sorted(names(cluster)) == ["web-0", "web-1", "web-2", "web-3"]
    assert cluster.skipped == []


def test_pods_that_the_api_server_would_refuse_are_skipped_together_and_named_with_the_field(read):
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "priorityClassName": "gold"}}
    cluster = read(workload("Deployment", replicas=4, template=template), workload("StatefulSet", "db"))
    assert names(cluster) == ["db-0"]
    (skipped,) = cluster.skipped
    assert (skipped.kind, skipped.name, skipped.pods) == ("Deployment", "web", 4)
    assert skipped.message == "spec.template.spec.priorityClassName: no PriorityClass with name 'gold' was found"


def test_a_quantity_that_is_none_is_named_with_its_place_in_the_template(read):
    containers = [{"resources": {"requests": {"memory": "1QiB"}}}]
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "containers": containers}}
    (skipped,) = read(workload("Job", "work", template=template)).skipped
    assert skipped.message.startswith("spec.template.spec.containers[0].resources.requests[memory]: not a quantity")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (workload("Deployment", replicas=-1), "spec.replicas: Invalid value: -1"),
        (workload("Deployment", replicas="three"), "spec.replicas: Invalid value: string: must be an integer"),
        (workload("Deployment", replicas=10**9), "spec.replicas: 1000000000 pods more are more than the 1000000 that"),
        (workload("StatefulSet", replicas=10**9), "spec.replicas: 1000000000 pods more"),
        (workload("Job", parallelism=10**9), "spec.parallelism: 1000000000 pods more"),
        (
            workload("Job", completions=10**9, completionMode="Indexed"),
            "spec.completions: 1000000000 pods more",
        ),
        (workload("Job", completionMode="Indexed", parallelism=2), "spec.completions: Required value"),
        (workload("Deployment", selector=None), "spec.selector: Required value"),
        (workload("Deployment", selector={"matchLabels": {"app": "other"}}), "selector does not match"),
        (workload("ReplicationController", selector={"app": "other"}), "selector does not match"),
        (workload("Deployment", template={"metadata": {"labels": LABELS}}), "spec.template.spec.containers: Required"),
        (workload("DaemonSet", "Web"), "metadata.name: 'Web' is not a valid name"),
    ],
)
def test_a_workload_that_the_api_server_would_refuse_is_one_clear_error(read, wrong, message):
    error = error_of(read, wrong)
    assert f'{wrong["kind"]} "{wrong["metadata"]["name"]}": ' in error
    assert message in error


def test_pods_given_and_made_add_up_in_the_summary(read):
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "priorityClassName": "gold"}}
    cluster = read(
        node("n1", cpu=2),
        workload("Deployment", replicas=6),
        workload("Deployment", "refused", replicas=4, template=template),
        pod("x", owner("Job", "y")),
    )
    simulator = Simulator(default_configuration())
    simulator.add(cluster)
    summary = simulator.run().summary
    assert (summary.running, summary.scheduled, summary.unschedulable) == (1, 3, 3)
    assert summary.pods == 11


@pytest.mark.parametrize(
    "left_over",
    [{"phase": "Failed"}, {"phase": "Succeeded"}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}],
)
def test_a_stateful_sets_pod_that_ended_or_is_being_deleted_is_made_again_under_its_name(read, left_over):
    before = pod("db-1", owner("StatefulSet", "db"), **left_over)
    cluster = read(node("n1"), before, workload("StatefulSet", "db", replicas=3))
    assert sorted(names(cluster)) == ["db-0", "db-1", "db-1", "db-2"]
    simulator = Simulator(default_configuration())
    simulator.add(cluster)
    report = simulator.run()
    assert sorted(each.name for each in report.pods) == ["db-0", "db-1", "db-2"]
    assert (report.summary.pods, report.summary.scheduled) == (4, 3)


def test_what_is_left_of_a_pod_of_no_stateful_set_keeps_its_name(read):
    assert names(read(pod("db-0", owner("Job", "db"), phase="Failed"), workload("StatefulSet", "db"))) == ["db-0"]


@pytest.mark.parametrize(
    ("kind", "name", "spec", "message"),
    [
        (
            "CronJob",
            "a" * 53,
            {"jobTemplate": {"spec": {"template": TEMPLATE}}, "schedule": "@daily"},
            "metadata.name: Invalid value: '{}': must be no more than 52 characters",
        ),
        ("Job", "a" * 64, {}, "metadata.name: Invalid value: '{}': must be no more than 63 characters"),
        ("StatefulSet", "a" * 64, {}, "metadata.name: Invalid value: '{}': must be no more than 63 characters"),
        ("StatefulSet", "a.b", {}, "metadata.name: Invalid value: '{}': must not contain dots"),
    ],
)
def test_a_name_leaves_room_for_what_is_made_of_it(read, kind, name, spec, message):
    assert error_of(read, workload(kind, name, **spec)).endswith(message.format(name))
    shorter = name.replace(".", "")[: -1 if "." not in name else None]
    assert len(names(read(workload(kind, shorter, **spec)))) == 1


@pytest.mark.parametrize(
    ("schedule", "is_taken"), [("0 8 * jan-MAR mon,fri", True), ("0 8 * * foo", False), ("x 8 * * *", False)]
)
def test_a_schedule_has_words_for_months_and_days_alone(read, schedule, is_taken):
    cron = workload("CronJob", jobTemplate={"spec": {"template": TEMPLATE}}, schedule=schedule)
    if is_taken:
        assert names(read(cron)) == ["web-1-1"]
    else:
        assert "is no schedule of cron" in error_of(read, cron)


def autoscaler(least, kind="Deployment", name="web"):
    spec = {"scaleTargetRef": {"kind": kind, "name": name}, "minReplicas": least, "maxReplicas": 9}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": spec}


def test_an_autoscaler_has_its_workload_run_as_many_pods_at_least(read):
    cluster = read(autoscaler(3), workload("Deployment"))
    assert names(cluster) == ["web-1", "web-2", "web-3"]
    assert cluster.notes == ["Deployment default/web: its HorizontalPodAutoscaler gives it 3 replicas"]
    assert cluster.ignored_kinds == {}


@pytest.mark.parametrize(("replicas", "least"), [(0, 3), (4, 3), (1, None)])
def test_an_autoscaler_leaves_a_workload_alone_that_has_no_pods_or_enough(read, replicas, least):
    cluster = read(workload("Deployment", replicas=replicas), autoscaler(least), autoscaler(9, "StatefulSet"))
    assert (len(cluster.pods), cluster.notes) == (replicas, [])
