"""Scenes as files for `bayplan simulate`, and its report as kube-scheduler's log would tell it."""

import json
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from tests.oracle.case import Decision, Object, Scene

from bayplan.api.kinds import RESOURCES
from bayplan.cli import main

_API_VERSIONS = {resource.kind: resource.api_version for resource in RESOURCES}


def cluster_file(scene: Scene, decisions: Sequence[Decision]) -> Object:
    """The cluster that met the pod after those decided on, as a list that `kubectl get -o json` could have written."""
    items = [{"apiVersion": _API_VERSIONS[each["kind"]], **each} for each in scene.objects]
    items += [{"apiVersion": "v1", "kind": "Node", **node} for node in scene.nodes]
    bound = [
        {**pod, "spec": {**pod["spec"], "nodeName": decision.node}}
        for pod, decision in zip(scene.incoming, decisions, strict=False)
        if decision.node is not None
    ]
    pods = [*scene.placed, *bound, scene.incoming[len(decisions)]]
    items += [{"apiVersion": "v1", "kind": "Pod", **_without_templates(pod)} for pod in pods]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _without_templates(pod: Object) -> Object:
    """The pod as a snapshot has it: nobody made claims of templates while kube-scheduler was recorded."""
    volumes = [{**each, "ephemeral": {}} if "ephemeral" in each else each for each in pod["spec"].get("volumes", ())]
    return {**pod, "spec": {**pod["spec"], "volumes": volumes}}


def decision_of(attempt: Object) -> Decision:
    """An attempt of the report as a decision of kube-scheduler's log."""
    if attempt["node"] is None:
        return Decision(message=attempt["message"])
    nodes = attempt["nodes"]
    feasible = sorted(name for name, verdict in nodes.items() if verdict["rejectedBy"] is None)
    assert attempt["feasibleNodes"] == len(feasible)
    decision = Decision(node=attempt["node"], feasible=feasible)
    if len(feasible) > 1:
        plugins = nodes[feasible[0]]["scores"]
        decision.scores = {plugin: [nodes[name]["scores"][plugin] for name in feasible] for plugin in plugins}
        decision.totals = [nodes[name]["score"] for name in feasible]
    return decision


def simulate(document: Object, cluster: Object, folder: Path) -> Object:
    """The report of `bayplan simulate --explain` on a configuration and a cluster, which are written to `folder`."""
    paths = {}
    for name, content in (("config", document), ("cluster", cluster)):
        paths[name] = folder / f"{name}.json"
        paths[name].write_text(json.dumps(content))
    files = ("--config", str(paths["config"]), "--cluster", str(paths["cluster"]))
    output = StringIO()
    with redirect_stdout(output), pytest.raises(SystemExit) as ended:
        main(["simulate", *files, "--explain", "-o", "json"])
    assert not ended.value.code
    report: Object = json.loads(output.getvalue())
    return report
