"""`bayplan simulate --add` of what yields no pod to try: a line says so, and --fail-on-unschedulable ends with 3."""

import json
import os
import subprocess
import sys

import pytest
from tests.cli.simulate_inputs import NODE, POD, WEB, asking, lists, pod

TEMPLATE = WEB["spec"]["template"]
BIG = asking("cpu", 5)["spec"]
KEPT_AWAY = {**WEB, "kind": "DaemonSet", "spec": {**WEB["spec"], "template": {**TEMPLATE, "spec": pod()["spec"]}}}
KEPT_AWAY["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "nvme"}
NOTHING = "more: nothing to try: no pod, no workload, and nothing that decides where pods go"
UNREAD = "objects of this kind and apiVersion are not read: no pod of it is tried"

CASES = {
    "a kind with pods that is not read": (
        {**WEB, "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"},
        f"more: Rollout default/web skipped: {UNREAD}",
    ),
    "a kind whose pods are deep in it": (
        {"apiVersion": "example.com/v1", "kind": "Train", "metadata": {"name": "t"}, "spec": {"parts": [WEB["spec"]]}},
        f"more: Train default/t skipped: {UNREAD}",
    ),
    "a Deployment of another group": (
        {**WEB, "apiVersion": "example.com/v1"},
        f"more: Deployment default/web skipped: {UNREAD}",
    ),
    "an empty list": (json.loads(lists()), NOTHING),
    "a ConfigMap alone": ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}, NOTHING),
    "daemons that no node lets in": (
        KEPT_AWAY,
        "more: DaemonSet default/web skipped: no pod is made: no node has what it selects and lets it in by its taints",
    ),
    "a pod on a node that is not there": (
        pod(nodeName="n9"),
        "more: pod default/p skipped: spec.nodeName: there is no node 'n9'",
    ),
    "a workload's pods on a node that is not there": (
        {**WEB, "spec": {**WEB["spec"], "template": {**TEMPLATE, "spec": pod(nodeName="n9")["spec"]}}},
        "more: pod default/web-2 skipped: spec.nodeName: there is no node 'n9'",
    ),
    "a pod on a node without the room": (
        {**POD, "spec": {**BIG, "nodeName": "n1"}},
        "more: pod default/p skipped: spec.nodeName: node 'n1' has too little cpu for it",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_yields_no_pod_to_try_is_named_and_fails_where_that_is_asked(simulate, case):
    added, line = CASES[case]
    files = {"in": lists(NODE), "more": json.dumps(added)}
    arguments = ("--cluster", "in", "--add", "more", "--validate", "warn")
    for flags, expected in (((), 0), (("--fail-on-unschedulable",), 3)):
        code, _, err = simulate(files, *arguments, *flags)
        assert code == expected
        assert line in [told.replace("more:1:1: ", "more: ") for told in err.splitlines()]


@pytest.mark.parametrize("added", [pod(nodeName="n1"), {**NODE, "metadata": {"name": "n2"}}, WEB])
def test_what_has_its_room_or_decides_where_pods_go_is_no_fault(simulate, added):
    files = {"in": lists(NODE), "more": json.dumps(added)}
    code, _, err = simulate(files, "--cluster", "in", "--add", "more", "--fail-on-unschedulable")
    assert (code, err) == (0, "")


def test_of_pods_on_a_full_node_only_those_that_are_added_are_named(simulate):
    there = {**POD, "metadata": {"name": "there"}, "spec": {**asking("cpu", 3)["spec"], "nodeName": "n1"}}
    added = {**POD, "spec": {**asking("cpu", 2)["spec"], "nodeName": "n1"}}
    done = {**added, "metadata": {"name": "done"}, "status": {"phase": "Succeeded"}}
    files = {"in": lists(NODE, there, done), "more": lists(added)}
    code, out, err = simulate(files, "--cluster", "in", "--add", "more", "--fail-on-unschedulable")
    assert code == 3
    assert [line.partition(" skipped")[0].rpartition(": ")[2] for line in err.splitlines()] == ["pod default/p"]
    assert "Nodes: 1 of 1 in use" in out


def test_what_was_not_tried_is_told_after_the_table_in_a_file_as_well(tmp_path):
    (tmp_path / "in").write_text(lists(NODE, pod(schedulerName="")))
    command = [sys.executable, "-m", "bayplan", "simulate", "--cluster", "in", "--fail-on-unschedulable"]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        command, cwd=tmp_path, env=buffered, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 3
    assert done.stdout.splitlines()[-1].startswith("--fail-on-unschedulable: pod default/p was not tried")
