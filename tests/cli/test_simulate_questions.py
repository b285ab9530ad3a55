"""`bayplan simulate` asked about another cluster than there is, and how many more of a pod fit."""

import json
import os

import pytest
from tests.cli.simulate_inputs import NODE, POD, WEB, asking, lists, pod


def test_how_many_more_fit_is_counted(simulate):
    files = {"in": lists(NODE), "pod.json": json.dumps(POD)}
    code, out, err = simulate(files, "--cluster", "in", "--add", "pod.json", "--count", "max")
    assert (code, err) == (0, "")
    assert "Fits:  4 more of default/p, on 1 node\n       4 on n1\n" in out
    few = ("--cluster", "in", "--add", "pod.json", "--fail-on-unschedulable", "--count")
    assert [simulate(files, *few, count)[0] for count in ("4", "5")] == [0, 3]


def test_a_change_is_told_with_a_node_that_keeps_no_room_for_a_nominated_pod(simulate):
    other = {**NODE, "metadata": {"name": "n2"}}
    vip = {**asking("cpu", "4"), "metadata": {"name": "vip"}, "status": {"nominatedNodeName": "n1"}}
    vip["spec"] = {**vip["spec"], "schedulerName": "other", "priority": 1000}
    picky = {**asking("cpu", "1"), "metadata": {"name": "picky"}}
    picky["spec"] = {**picky["spec"], "nodeSelector": {"disk": "nvme"}}
    _, out, _ = simulate({"in": lists(NODE, other, vip, picky)}, "--cluster", "in", "--explain")
    assert "would help: to ask for no disk=nvme, on n2" in out


def test_an_added_pod_that_cannot_be_read_is_told_before_anything_is_asked_about_it(simulate):
    files = {"in": lists(NODE), "pod.json": json.dumps(asking("cpu", "zzz"))}
    lenient = ("--validate", "ignore")
    code, out, err = simulate(files, "--cluster", "in", "--add", "pod.json", "--count", "max", *lenient)
    assert (code, out) == (2, "")
    assert err.startswith("pod.json: pod default/p skipped: spec.containers[0].resources.requests[cpu]: ")


def test_a_workload_without_pods_to_come_is_counted_by_its_template(simulate):
    files = {"in": lists(NODE), "web.json": json.dumps({**WEB, "spec": {**WEB["spec"], "replicas": 0}})}
    code, out, err = simulate(files, "--cluster", "in", "--add", "web.json", "--count", "max")
    assert (code, err) == (0, "")
    assert "Fits:  4 more of default/web-1, on 1 node\n" in out


@pytest.mark.parametrize("name", ["kustomization.yaml", "kustomization.yml", "base/Kustomization"])
@pytest.mark.parametrize("flag", ["--cluster", "--add"])
def test_of_a_kustomization_it_is_said_what_to_give_instead(simulate, name, flag):
    files = {"in": lists(NODE), name: "resources: [web.yaml]\n"}
    code, out, err = simulate(files, "--cluster", "in", flag, name)
    told = f"{name}: is a kustomization: give what `kubectl kustomize` prints of its directory\n"
    assert (code, out, err) == (2, "", told)


def test_a_directory_of_a_kustomization_is_refused_as_well(simulate):
    files = {"in": lists(NODE), "base/kustomization.yaml": "resources: [web.yaml]\n", "base/web.json": json.dumps(WEB)}
    code, _, err = simulate(files, "--cluster", "in", "--add", "base")
    assert (code, "base/kustomization.yaml: is a kustomization: " in err) == (2, True)


def test_a_pipe_in_a_directory_is_no_file_of_the_cluster(simulate, tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    code, out, err = simulate({"node.json": json.dumps(NODE)}, "--cluster", str(tmp_path))
    assert (code, err) == (0, "")
    assert "Nodes: 0 of 1 in use" in out


def test_evicted_pods_of_another_scheduler_say_which_name_to_give(simulate):
    other = {**NODE, "metadata": {"name": "n2"}}
    theirs = {**pod(nodeName="n1", schedulerName=""), "metadata": {"name": "theirs"}}
    files = {"in": lists(NODE, other, pod(nodeName="n1"), theirs)}
    code, out, err = simulate(files, "--cluster", "in", "--drain", "n1")
    assert code == 0
    assert err == (
        "1 evicted pod is not placed: it names the scheduler default-scheduler; "
        "to try it give --scheduler-name default-scheduler\n"
    )
    assert "1 scheduled, 0 unschedulable, 1 of other schedulers" in out


def test_copies_that_are_not_alike_are_not_counted(simulate):
    template = {"metadata": {"labels": {"app": "a"}}, "spec": POD["spec"]}
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    daemons = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"}, "spec": spec}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claims = [{"metadata": {"name": "data"}, "spec": claim}]
    stateful = {**daemons, "kind": "StatefulSet", "spec": {**spec, "volumeClaimTemplates": claims}}
    for workload, message in ((daemons, "one pod on each node"), (stateful, "claims of its own")):
        files = {"in": lists(NODE), "more.json": json.dumps(workload)}
        code, out, err = simulate(files, "--cluster", "in", "--add", "more.json", "--count", "max")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert message in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--count", "max"), "--count: --add must give one pod"),
        (("--count", "0"), "'0' is neither a number from 1 to 9999999 nor max"),
        (("--count", "-1"), "'-1' is neither a number"),
        (("--count", "all"), "'all' is neither a number"),
        (("--drain", "n9"), "--drain: there is no Node 'n9'"),
        (("--remove", "deploy/web"), "--remove: there is no Deployment 'web' in namespace default"),
        (("--remove", ""), '--remove: "": neither a file nor'),
        (("--remove", "x" * 5000), 'xxx...": neither a file nor'),
        (("--remove", "web"), '--remove: "web": neither a file nor KIND/NAME of a kind that is read'),
        (("--add", "nothing.yaml"), "nothing.yaml: cannot be read: No such file or directory"),
    ],
)
def test_a_question_that_has_no_answer_is_refused(simulate, arguments, message):
    code, out, err = simulate({"in": lists(NODE)}, "--cluster", "in", *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_a_drain_is_told_in_the_summary(simulate):
    other = {**NODE, "metadata": {"name": "n2"}}
    files = {"in": lists(NODE, other, pod(nodeName="n1"))}
    code, out, _ = simulate(files, "--cluster", "in", "--drain", "n1")
    assert code == 0
    assert "Drain: n1: 1 pod evicted\n" in out
    assert "Pods:  1: 1 scheduled" in out


def test_pods_of_a_gang_without_room_have_a_row_each_though_they_are_tried_twice(simulate):
    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"}}
    pods = [{**pod(), "metadata": {"name": f"g{number}", "labels": labels}} for number in range(6)]
    _, out, _ = simulate({"in": lists(NODE, {**group, "spec": {"minMember": 2}}, *pods)}, "--cluster", "in")
    assert [out.count(f"default/g{number} ") for number in range(6)] == [1] * 6
    assert "6: 4 scheduled, 2 unschedulable" in out
