"""`bayplan simulate --explain -o json` tells what kube-scheduler logged."""

import json

import pytest
from tests.oracle.case import RECORDINGS, Case, Decision, Object, Recorded, recorded_cases
from tests.oracle.families.family import FAMILIES
from tests.oracle.replay import differences

from bayplan.api.kinds import RESOURCES
from bayplan.cli import main

_A_FAMILY = 8
_API_VERSIONS = {resource.kind: resource.api_version for resource in RESOURCES}


def _sample() -> dict[str, Recorded]:
    """Some cases of every family, far apart."""
    found = {}
    for family in FAMILIES:
        cases = list(recorded_cases(RECORDINGS, [family]))
        found |= {each.case.name: each for each in cases[:: max(1, len(cases) // _A_FAMILY)]}
    return found


_SAMPLE = _sample()


def cluster_file(case: Case, chosen: int) -> Object:
    """The cluster that met one of the incoming pods, as a list that `kubectl get -o json` could have written."""
    scene, decisions = case.scene, case.decisions
    items = [{"apiVersion": _API_VERSIONS[each["kind"]], **each} for each in scene.objects]
    items += [{"apiVersion": "v1", "kind": "Node", **node} for node in scene.nodes]
    bound = [
        {**pod, "spec": {**pod["spec"], "nodeName": decision.node}}
        for pod, decision in zip(scene.incoming[:chosen], decisions, strict=False)
        if decision.node is not None
    ]
    pods = [*scene.placed, *bound, scene.incoming[chosen]]
    items += [{"apiVersion": "v1", "kind": "Pod", **pod} for pod in pods]
    return {"apiVersion": "v1", "kind": "List", "items": items}


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


def scenes_of(case: Case) -> list[int]:
    """Which incoming pods to try: claims that earlier pods took are in no file, so with claims only the first one."""
    has_claims = any(each["kind"] == "PersistentVolumeClaim" for each in case.scene.objects)
    return [0] if has_claims else sorted({0, len(case.decisions) - 1})


@pytest.fixture
def simulate(tmp_path, capsys):
    def simulate(document: Object, cluster: Object) -> Object:
        paths = {}
        for name, content in (("config", document), ("cluster", cluster)):
            paths[name] = tmp_path / f"{name}.json"
            paths[name].write_text(json.dumps(content))
        files = ("--config", str(paths["config"]), "--cluster", str(paths["cluster"]))
        with pytest.raises(SystemExit) as ended:
            main(["simulate", *files, "--explain", "-o", "json"])
        assert not ended.value.code
        report: Object = json.loads(capsys.readouterr().out)
        return report

    return simulate


@pytest.mark.parametrize("name", _SAMPLE)
def test_a_simulation_explains_a_recorded_case_in_kube_schedulers_numbers(name, simulate):
    recorded = _SAMPLE[name]
    for chosen in scenes_of(recorded.case):
        (pod,) = simulate(recorded.document, cluster_file(recorded.case, chosen))["pods"]
        expected = recorded.case.decisions[chosen]
        found = decision_of(pod["attempts"][0])
        # The report says in words that a cycle failed, as events do.
        found.error = expected.error
        assert pod["name"] == recorded.case.scene.incoming[chosen]["metadata"]["name"]
        assert not differences(expected, found)
