"""Extended resources that a DeviceClass provides: the claims that are made for pods are those of kube-scheduler."""

import random
from collections.abc import Iterable, Iterator

import pytest
from e2e.conftest import RunBayplan
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.devices import (
    claiming,
    delete_devices,
    device_class,
    devices_of,
    let_go_of_claims,
    reserved_for,
    resource_claim,
    resource_slice,
)
from e2e.controlplane.objects import container, node, pod
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.outcomes import condition_of, configuration, end_pod, profile, wait_bound, wait_refused

pytestmark = pytest.mark.controlplane

GPU = "nvidia.com/gpu"
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu"
CASES = 12


@pytest.fixture(autouse=True)
def devices(client: ApiClient, namespace: str) -> Iterator[None]:
    """A node whose device plugin offers two GPUs, one without any, and one whose driver publishes five devices."""
    client.create_all("nodes", [node("plugin", resources={GPU: "2"}), node("none"), node("driver")])
    client.create("deviceclasses", device_class(extendedResourceName=GPU))
    client.create("resourceslices", resource_slice("driver", 5))
    yield
    delete_devices(client, [namespace])


def random_containers(dice: random.Random, name: str, count: int, **fields: object) -> list[Object]:
    """Returns containers that ask for devices by either name, or for none."""
    made = []
    for index in range(count):
        amounts: dict[str, object] = {"cpu": "10m"}
        for resource in (GPU, IMPLICIT):
            if amount := dice.choice((0, 0, 1, 2, 3)):
                amounts[resource] = str(amount)
        more = fields if dice.random() < 0.5 else {}
        made.append(container(amounts, f"{name}{index}", **more))
    return made


def answer(client: ApiClient, namespace: str, name: str, scheduler: str, spec: Object) -> Object:
    """Has a scheduler decide about a pod, and returns what came of it; pod and claim are gone then."""
    made = pod(name, namespace, scheduler=scheduler)
    client.create("pods", {**made, "spec": {**made["spec"], **spec}})

    def decided() -> bool:
        shown = client.get("pods", name, namespace)
        return bool(shown["spec"].get("nodeName") or condition_of(shown).get("reason") == "Unschedulable")

    wait_until(decided, f"{scheduler} decides")
    shown = client.get("pods", name, namespace)
    claims = client.list("resourceclaims", namespace)
    told = shown["status"].get("extendedResourceClaimStatus", {})
    found = {
        "node": shown["spec"].get("nodeName", ""),
        "message": condition_of(shown).get("message", ""),
        "mappings": told.get("requestMappings"),
        "is named": told.get("resourceClaimName") == (claims[0]["metadata"]["name"] if claims else None),
        "asked": [claim["spec"] for claim in claims],
        "meta": [
            {key: claim["metadata"].get(key) for key in ("generateName", "annotations", "finalizers")}
            for claim in claims
        ],
        "owned": [claim["metadata"]["ownerReferences"][0]["uid"] == shown["metadata"]["uid"] for claim in claims],
        "devices": devices_of(claims),
        "users": [reserved_for(claim) for claim in claims],
    }
    _end_with_claims(client, namespace, [name])
    return found


def _end_with_claims(client: ApiClient, namespace: str, pods: Iterable[str]) -> None:
    """Ends the pods and deletes all claims of the namespace, so that its devices are free again."""
    for name in pods:
        end_pod(client, namespace, name)
    let_go_of_claims(client, [namespace])
    client.delete_all("resourceclaims", namespace)
    wait_until(lambda: not client.list("resourceclaims", namespace), "the claims are gone")


def test_both_schedulers_make_the_same_claims_for_the_same_pods(
    client: ApiClient, namespace: str, bayplan: BayplanProcess, control_plane: ControlPlane
) -> None:
    kube = control_plane.start_kube_scheduler({"profiles": [{"schedulerName": "kube"}]})
    try:
        dice, bound = random.Random(1), 0
        for number in range(CASES):
            inits = random_containers(dice, "init", dice.randrange(4), restartPolicy="Always")
            containers = random_containers(dice, "main", dice.randrange(1, 3))
            where = {"kubernetes.io/hostname": dice.choice(("driver", "driver", "plugin"))}
            spec: Object = {"initContainers": inits, "containers": containers, "nodeSelector": where}
            theirs, ours = (answer(client, namespace, f"p{number}", each, spec) for each in ("kube", "bayplan"))
            assert ours == theirs, spec
            bound += bool(ours["node"])
        assert 0 < bound < CASES
    finally:
        kube.stop(5)


def test_a_pod_with_a_claim_of_its_own_is_bound_where_a_device_plugin_offers_the_resource(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    client.create("resourceslices", resource_slice("plugin", 1))
    client.create("resourceclaims", resource_claim("c", namespace))
    where = {"kubernetes.io/hostname": "plugin"}
    client.create("pods", claiming("p", namespace, "c", containers=[container({GPU: "1"})], nodeSelector=where))
    wait_bound(client, namespace, ["p"])
    assert [each["metadata"]["name"] for each in client.list("resourceclaims", namespace)] == ["c"]


def test_what_an_earlier_attempt_left_is_deleted_and_the_pod_is_bound_after_that(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    made = client.create("pods", pod("p", namespace, requests={GPU: "5"}, schedulingGates=[{"name": "later"}]))
    kept = resource_claim("p-extended-resources-old", namespace, owner=made, count=5)
    kept["metadata"]["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
    client.create("resourceclaims", kept)
    client.patch("pods", "p", {"spec": {"schedulingGates": None}}, namespace=namespace)
    assert wait_bound(client, namespace, ["p"]) == {"p": "driver"}
    (claim,) = client.list("resourceclaims", namespace)
    assert claim["metadata"]["name"] != "p-extended-resources-old"


def test_a_pod_that_waits_for_its_class_is_bound_once_that_names_its_resource(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    client.create("pods", pod("p", namespace, requests={"example.com/late": "1"}))
    assert "3 Insufficient example.com/late" in wait_refused(client, namespace, "p")["message"]
    client.create("deviceclasses", device_class("late", extendedResourceName="example.com/late"))
    assert wait_bound(client, namespace, ["p"]) == {"p": "driver"}


def chosen(client: ApiClient, namespace: str, scheduler: str) -> list[str]:
    """Has a scheduler place pods that ask for devices, one after the other, and returns where; all is gone then."""
    found = []
    for number, count in enumerate((3, 2, 1, 2, 3, 2)):
        name = f"s{number}"
        client.create("pods", pod(name, namespace, scheduler=scheduler, requests={"cpu": "10m", GPU: str(count)}))
        wait_bound(client, namespace, [name])
        found.append(client.get("pods", name, namespace)["spec"]["nodeName"])
    _end_with_claims(client, namespace, (f"s{number}" for number in range(len(found))))
    return found


def test_devices_are_packed_by_the_strategy_that_names_their_resource_as_by_kube_scheduler(
    client: ApiClient, namespace: str, run_bayplan: RunBayplan, control_plane: ControlPlane
) -> None:
    client.create_all("nodes", [node("three"), node("seven")])
    client.create_all("resourceslices", [resource_slice("three", 3), resource_slice("seven", 7)])
    strategy = {"type": "MostAllocated", "resources": [{"name": GPU, "weight": 1}]}
    args = {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}
    fit_only = {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}}
    answers = []
    for name in ("kube", "packs"):
        profiles = [profile(name, plugins=fit_only, pluginConfig=[args])]
        is_kube = name == "kube"
        process = (
            control_plane.start_kube_scheduler({"profiles": profiles})
            if is_kube
            else run_bayplan(configuration(*profiles))
        )
        try:
            answers.append(chosen(client, namespace, name))
        finally:
            process.stop(5)
    assert answers[0] == answers[1] == ["three", "plugin", "driver", "driver", "seven", "driver"]
