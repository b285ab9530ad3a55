"""The same extender in front of kube-scheduler and of bayplan: both choose the same nodes and say the same."""

from collections.abc import Iterator

import pytest
from e2e.conftest import RunBayplan
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane
from e2e.scenarios.extender_server import extender_answering
from e2e.scenarios.outcomes import (
    assert_alive_without_a_traceback,
    configuration,
    profile,
    wait_bound,
    wait_refused,
)

pytestmark = pytest.mark.controlplane

STOP_SECONDS = 5.0
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


@pytest.fixture
def extender() -> Iterator[str]:
    """Its URL."""
    with extender_answering(_licences) as url:
        yield url


def _put(client: ApiClient, namespace: str, scheduler: str) -> None:
    for name, annotations in {"good": {"licence": "yes"}, "bad": {}}.items():
        wanted = pod(f"{name}-{scheduler}", namespace, scheduler=scheduler, requests={"cpu": "1"})
        wanted["metadata"]["annotations"] = annotations
        client.create("pods", wanted)


@pytest.mark.parametrize("capable", [True, False], ids=["names", "whole-nodes"])
def test_kube_scheduler_and_bayplan_do_the_same_with_the_same_extender(
    *, control_plane: ControlPlane, namespace: str, run_bayplan: RunBayplan, extender: str, capable: bool
) -> None:
    client = control_plane.client
    for name in NODES:
        client.create("nodes", node(name, cpu="8", memory="8Gi"))
    extenders = [
        {
            "urlPrefix": extender,
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "weight": 5,
            "nodeCacheCapable": capable,
        }
    ]
    kube_scheduler = control_plane.start_kube_scheduler({"profiles": [profile("reference")], "extenders": extenders})
    bayplan = run_bayplan({**configuration(profile("bayplan")), "extenders": extenders})
    try:
        _put(client, namespace, "reference")
        _put(client, namespace, "bayplan")
        bound = wait_bound(client, namespace, ["good-reference", "good-bayplan"])
        assert bound == {"good-reference": "n3", "good-bayplan": "n3"}
        notes = [
            wait_refused(client, namespace, f"bad-{scheduler}")["message"].split(".")[0]
            for scheduler in ("reference", "bayplan")
        ]
        assert notes == ["0/4 nodes are available: 4 no licence"] * 2
    finally:
        kube_scheduler.stop(STOP_SECONDS)
    assert_alive_without_a_traceback(bayplan)
