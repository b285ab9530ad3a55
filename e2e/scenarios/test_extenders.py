"""The same extender in front of kube-scheduler and of bayplan: both choose the same nodes and say the same."""

import pytest
from e2e.conftest import RunBayplan
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane
from e2e.scenarios.extender_server import SCHEDULERS, both_schedulers
from e2e.scenarios.outcomes import wait_bound, wait_refused

pytestmark = pytest.mark.controlplane

NODES = ("n1", "n2", "n3", "n4")


def _licences(verb: str, body: Object) -> object:
    """Leaves n2 and n3 to pods with the annotation `licence`, prefers n3, and leaves nothing to others."""
    annotations = body["Pod"]["metadata"].get("annotations") or {}
    names = body["NodeNames"]
    if names is None:
        names = [item["metadata"]["name"] for item in body["Nodes"]["items"]]
    if verb != "filter":
        return [{"Host": name, "Score": 10 if name == "n3" else 0} for name in names]
    left = [name for name in names if name in {"n2", "n3"}] if "licence" in annotations else []
    answer: dict[str, object] = {"FailedNodes": {name: "no licence" for name in names if name not in left}}
    if body["NodeNames"] is None:
        answer["Nodes"] = {"items": [i for i in body["Nodes"]["items"] if i["metadata"]["name"] in left]}
    else:
        answer["NodeNames"] = left
    return answer


def _put(client: ApiClient, namespace: str, scheduler: str) -> None:
    for name, annotations in {"good": {"licence": "yes"}, "bad": {}}.items():
        wanted = pod(f"{name}-{scheduler}", namespace, scheduler=scheduler, requests={"cpu": "1"})
        wanted["metadata"]["annotations"] = annotations
        client.create("pods", wanted)


@pytest.mark.parametrize("capable", [True, False], ids=["names", "whole-nodes"])
def test_kube_scheduler_and_bayplan_do_the_same_with_the_same_extender(
    control_plane: ControlPlane, namespace: str, run_bayplan: RunBayplan, *, capable: bool
) -> None:
    client = control_plane.client
    for name in NODES:
        client.create("nodes", node(name, cpu="8", memory="8Gi"))
    extender = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 5, "nodeCacheCapable": capable}
    with both_schedulers(control_plane, run_bayplan, _licences, **extender):
        for scheduler in SCHEDULERS:
            _put(client, namespace, scheduler)
        good = [f"good-{scheduler}" for scheduler in SCHEDULERS]
        assert wait_bound(client, namespace, good) == dict.fromkeys(good, "n3")
        notes = [
            wait_refused(client, namespace, f"bad-{scheduler}")["message"].split(".")[0] for scheduler in SCHEDULERS
        ]
        assert notes == ["0/4 nodes are available: 4 no licence"] * 2
