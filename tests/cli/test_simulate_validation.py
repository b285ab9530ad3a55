"""`bayplan simulate` refuses what the API server would refuse, of files that people wrote."""

import json

import pytest
from tests.cli.simulate_inputs import CUSTOM, NODE, POD, WEB, asking, lists, pod

NODES = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 4, pods: 9}}
---
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      schedulerName: bayplan
      containers:
      - name: c
        resources: {requests: {cpu: 1}}
"""
SPREAD = "      topologySpreadConstraints: [{maxSkew: %s, topologyKey: zone, whenUnsatisfiable: %s}]\n"
MISTAKES = {
    "an unknown field": ("  replicas: 2", "  replica: 5", 'spec.replica: unknown field, did you mean "replicas"?'),
    "an unknown field of the pod": (
        "      containers:",
        "      nodeSelectr: {a: b}\n      containers:",
        'spec.template.spec.nodeSelectr: unknown field, did you mean "nodeSelector"?',
    ),
    "another one": (
        "      containers:",
        "      toleration: []\n      containers:",
        'spec.template.spec.toleration: unknown field, did you mean "tolerations"?',
    ),
    "an unknown field of a container": (
        "resources: {requests",
        "resources: {request",
        'spec.template.spec.containers[0].resources.request: unknown field, did you mean "requests"?',
    ),
    "a wrong type": (
        "  replicas: 2",
        "  replicas: many",
        'spec.replicas: Invalid value: "many": must be an integer',
    ),
    "a skew of 0": (
        "      containers:",
        SPREAD % (0, "DoNotSchedule") + "      containers:",
        "spec.template.spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
    ),
    "an unknown action": (
        "      containers:",
        SPREAD % (1, "DoNotSchedul") + "      containers:",
        (
            "spec.template.spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "
            '"DoNotSchedul": supported values: "DoNotSchedule", "ScheduleAnyway"'
        ),
    ),
    "an unknown operator": (
        "      containers:",
        "      tolerations: [{key: a, operator: Equals}]\n      containers:",
        (
            'spec.template.spec.tolerations[0].operator: Unsupported value: "Equals": '
            'supported values: "Equal", "Exists", "Gt", "Lt"'
        ),
    ),
    "a resource that there is not": (
        "{cpu: 1}",
        "{mem: 1Gi}",
        (
            "spec.template.spec.containers[0].resources.requests[mem]: Invalid value: 'mem': "
            "must be a standard resource for containers"
        ),
    ),
    "a kind that there is not": (
        "kind: Deployment",
        "kind: Deploymnt",
        'kind: no matches for kind "Deploymnt" in version "apps/v1"',
    ),
}
ASK = ("--cluster", "in", "--fail-on-unschedulable")


def line_of(text, found):
    """The line and column at which the field that `found` names begins."""
    name = found.partition(": ")[0].rpartition(".")[2].partition("[")[0]
    (line,) = [number for number, each in enumerate(text.splitlines(), 1) if f"{name}:" in each.replace("{", " ")][-1:]
    return line, text.splitlines()[line - 1].index(f"{name}:") + 1


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused_with_its_line_and_column(simulate, mistake):
    before, after, message = MISTAKES[mistake]
    assert DEPLOYMENT.count(before) == 1
    text = NODES + DEPLOYMENT.replace(before, after)
    line, column = line_of(text, message)
    kind = "Deploymnt" if "no matches" in message else "Deployment"
    code, out, err = simulate({"in": text}, *ASK)
    assert (code, out, err) == (2, "", f'in:{line}:{column}: {kind} "web": {message}\n')


def test_a_taint_with_an_unknown_effect_is_refused(simulate):
    text = NODES.replace("status:", "spec: {taints: [{key: a, effect: NoScedule}]}\nstatus:")
    code, _, err = simulate({"in": text}, *ASK)
    assert code == 2
    assert err.startswith('in:4:26: Node "n1": spec.taints[0].effect: Unsupported value: "NoScedule"')


def test_the_file_without_mistakes_is_simulated(simulate):
    code, out, err = simulate({"in": NODES + DEPLOYMENT}, *ASK)
    assert (code, err) == (0, "")
    assert "2 scheduled" in out


def test_all_mistakes_of_all_files_are_told(simulate):
    wrong = "kind: Pod\nmetadata: {name: p}\nspce: {}\nspec: {containers: [{name: c}]}\n---\n"
    files = {"in": NODES + DEPLOYMENT.replace("replicas", "replica"), "more": wrong + wrong.replace("spce", "x")}
    code, _, err = simulate(files, "--cluster", "in", "--add", "more")
    assert code == 2
    assert [line.split(": ")[0] for line in err.splitlines()] == ["in:10:3", "more:3:1", "more:8:1"]


@pytest.mark.parametrize("kind", ["Pod", "Deployment"])
def test_an_added_pod_of_a_priority_that_no_class_gives_is_not_placed(simulate, kind):
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {**POD["spec"], "priority": 5}}
    web = {**WEB, "spec": {**WEB["spec"], "template": template}}
    added = pod(priority=5) if kind == "Pod" else web
    code, _, err = simulate({"in": lists(NODE), "p": json.dumps(added)}, *ASK, "--add", "p")
    assert code == 3
    assert "spec.priority: Forbidden: 5; the PriorityClass gives 0" in err


def test_a_key_that_json_gives_twice_is_refused(simulate):
    code, _, err = simulate(
        {"in": lists(NODE), "p": '{"kind": "Pod", "metadata": {}, "metadata": {"name": "p"}}'}, *ASK, "--add", "p"
    )
    assert (code, err.splitlines()[0]) == (2, 'p:1:33: Pod "p": metadata: is given twice')


@pytest.mark.parametrize(("validate", "lines"), [("warn", 1), ("ignore", 0)])
def test_a_mistake_can_be_let_pass(simulate, validate, lines):
    files = {"in": NODES + DEPLOYMENT.replace("replicas: 2", "replica: 5")}
    code, out, err = simulate(files, *ASK, "--validate", validate)
    assert (code, err.count("\n")) == (0, lines)
    assert err.startswith("warning: in:10:3: Deployment" if lines else "")
    assert "1 scheduled" in out


@pytest.mark.parametrize("given", [{"uid": "7d1e"}, {"resourceVersion": "41"}])
def test_what_came_from_an_api_server_is_read_as_it_is(simulate, given):
    newer = {**POD, "metadata": {"name": "p", **given}, "spec": {**POD["spec"], "fieldOfTomorrow": 1}}
    assert simulate({"in": lists(NODE, newer)}, *ASK)[::2] == (0, "")
    written = simulate({"in": lists(NODE), "more": json.dumps(newer)}, *ASK, "--add", "more")
    assert written[0] == 2
    assert "spec.fieldOfTomorrow: unknown field" in written[2]


def test_custom_kinds_are_passed_over(simulate):
    code, out, err = simulate({"in": lists(NODE, {**CUSTOM, "nope": 1})}, *ASK)
    assert (code, err) == (0, "")
    assert "Ignored: 1 Spaceship" in out


THEIRS = {
    **WEB,
    "spec": {
        **WEB["spec"],
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {**POD["spec"], "schedulerName": "theirs"}},
    },
}


OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "r1", "controller": True}
REPLICA_SET = {**THEIRS, "kind": "ReplicaSet", "metadata": {"name": "web"}, "spec": {**THEIRS["spec"], "replicas": 1}}


def test_pods_that_nothing_was_tried_for_are_refused_by_name(simulate):
    files = {"in": lists(NODE), "web.json": json.dumps(THEIRS)}
    code, _, err = simulate(files, *ASK, "--add", "web.json")
    assert code == 3
    assert err.splitlines()[-1] == (
        "--fail-on-unschedulable: pod default/web-1 and 1 more were not tried: no profile is named theirs; "
        "give --as-scheduler for what --add gives, or --scheduler-name"
    )
    assert simulate(files, "--cluster", "in", "--add", "web.json")[0] == 0


def test_added_pods_can_be_tried_as_if_they_named_a_profile(simulate):
    files = {"in": lists(NODE), "web.json": json.dumps(THEIRS)}
    code, out, err = simulate(files, *ASK, "--add", "web.json", "--as-scheduler", "bayplan")
    assert (code, err) == (0, "")
    assert "2 scheduled" in out
    counted = simulate(files, *ASK, "--add", "web.json", "--as-scheduler", "bayplan", "--count", "9")
    assert counted[0] == 3
    assert "Fits:  4 more" in counted[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--as-scheduler", "bayplan"), "--as-scheduler is about the pods of --add"),
        (("--add", "p", "--as-scheduler", "nobody"), '--as-scheduler: no profile is named "nobody"'),
    ],
)
def test_a_scheduler_that_cannot_be_meant_is_refused(simulate, arguments, message):
    code, out, err = simulate({"in": lists(NODE), "p": json.dumps(POD)}, "--cluster", "in", *arguments)
    assert (code, out) == (2, "")
    assert message in err


def named(name, **spec):
    return {**pod(**spec), "metadata": {"name": name}}


BIG = [{"name": "c", "resources": {"requests": {"cpu": 99}}}]


def test_a_drain_is_no_worse_for_pods_that_waited_before(simulate):
    other = {**NODE, "metadata": {"name": "n2"}}
    waited = [named("big", containers=BIG), named("theirs", schedulerName="theirs")]
    files = {"in": lists(NODE, other, *waited, named("web", nodeName="n1"))}
    assert simulate(files, *ASK)[0] == 3
    assert simulate(files, *ASK, "--drain", "n1")[0] == 0


@pytest.mark.parametrize("evicted", [{}, {"schedulerName": "theirs"}])
def test_a_drain_is_worse_for_pods_that_then_have_no_node(simulate, evicted):
    files = {"in": lists(NODE, named("big", containers=BIG), named("web", nodeName="n1", **evicted))}
    assert simulate(files, *ASK, "--drain", "n1")[0] == 3


def test_a_drain_that_evicts_another_schedulers_pod_advises_what_has_it_tried(simulate):
    files = {"in": lists(NODE, named("web", nodeName="n1", schedulerName="theirs"))}
    code, _, err = simulate(files, *ASK, "--drain", "n1")
    assert code == 3
    assert err.splitlines()[-1] == (
        "--fail-on-unschedulable: pod default/web was not tried: no profile is named theirs; "
        "give --scheduler-name theirs"
    )


def test_a_drain_is_worse_for_a_pod_that_waits_and_would_have_had_the_room(simulate):
    other = {**NODE, "metadata": {"name": "n2"}}
    large = [{"name": "c", "resources": {"requests": {"cpu": 4}}}]
    files = {"in": lists(NODE, other, named("waits", containers=large), named("web", nodeName="n1"))}
    assert simulate(files, *ASK)[0] == 0
    assert simulate(files, *ASK, "--drain", "n1")[0] == 3


def test_an_added_pod_counts_though_one_of_its_name_waited_before(simulate):
    files = {"in": lists(NODE, named("p", containers=BIG)), "p": json.dumps(named("p", containers=BIG))}
    assert simulate(files, *ASK, "--add", "p")[0] == 3


def test_a_workload_that_has_all_its_pods_is_said_to_have_none_tried(simulate):
    pod = {**POD, "metadata": {"name": "web-0", "labels": {"app": "web"}, "ownerReferences": [OWNER]}}
    files = {"in": lists(NODE, {**pod, "spec": {**POD["spec"], "nodeName": "n1"}}), "web.json": json.dumps(REPLICA_SET)}
    code, _, err = simulate(files, *ASK, "--add", "web.json")
    assert code == 0
    assert err == "ReplicaSet default/web: no pod is tried, as it makes no more; simulate --count 1 tries one\n"
    assert "no pod is tried" not in simulate(files, *ASK, "--add", "web.json", "--count", "1")[2]


def rollout(cpu, **spec):
    """A Deployment whose only pod, of 3 of the 4 CPUs, is there; and what is added, of `cpu` CPUs each."""
    owner = {**OWNER, "kind": "Deployment"}
    old = {**asking("cpu", 3), "metadata": {"name": "web-a", "labels": {"app": "web"}, "ownerReferences": [owner]}}
    old["spec"] = {**old["spec"], "nodeName": "n1"}
    changed = json.loads(json.dumps({**WEB, "spec": {**WEB["spec"], "replicas": 1, **spec}}))
    changed["spec"]["template"]["spec"] = asking("cpu", cpu)["spec"]
    return {"in": lists(NODE, old), "web.json": json.dumps(changed)}


NOT_SURGING = {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}


@pytest.mark.parametrize(
    ("cpu", "spec", "expected"), [(1, {}, 0), (2, {}, 3), (4, NOT_SURGING, 0), (5, NOT_SURGING, 3)]
)
def test_the_first_pod_of_a_changed_template_is_tried_and_judged_though_all_pods_are_there(
    simulate, cpu, spec, expected
):
    code, out, err = simulate(rollout(cpu, **spec), *ASK, "--add", "web.json")
    way = " in the place of web-a" if spec else ""
    assert err == f"Deployment default/web: a pod of its changed template is tried{way}\n"
    assert (code, "default/web-1" in out) == (expected, True)


def test_a_pod_that_would_make_way_stays_where_pods_are_counted(simulate):
    code, out, err = simulate(rollout(1, **NOT_SURGING), *ASK, "--add", "web.json", "--count", "max")
    assert (code, err) == (0, "")
    assert "Fits:  1 more of default/web-1, on 1 node\n" in out
