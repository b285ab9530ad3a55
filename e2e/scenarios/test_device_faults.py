"""Claims are written before a pod is bound, and anything may happen in between: no device is lost, or given twice."""

import asyncio
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest
from aiohttp import web
from e2e.conftest import RunBayplan
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.devices import (
    claiming,
    create_with_own_claim,
    delete_devices,
    device_class,
    devices_of,
    let_go_of_claims,
    reserved_for,
    resource_claim,
    resource_slice,
)
from e2e.controlplane.installation import NAMESPACE, SERVICE_ACCOUNT
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.service_account import request_token
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.faulty_proxy import FaultyProxy, Match
from e2e.scenarios.outcomes import assert_alive_without_a_traceback, nodes_bound, wait_bound
from tests.faults.faults import BlackHole, DropReply, Fault, Refuse, RequestFault, Reset

pytestmark = [pytest.mark.controlplane, pytest.mark.usefixtures("bayplan")]

GPU = "example.com/gpu"
DEVICES = 4


class Meddle(RequestFault):
    """Have something happen right before a request arrives."""

    def __init__(self, meddle: Callable[[], object]) -> None:
        self._meddle = meddle

    async def serve(self, request: web.Request, act: Callable[[], object]) -> web.StreamResponse:
        await asyncio.to_thread(self._meddle)
        return await act()  # type: ignore[misc, no-any-return]


def writes(kind: str, part: str = "", *, method: str = "PATCH") -> Match:
    """Tells requests that write objects of a kind, or a part of them."""

    def matches(request: web.BaseRequest) -> bool:
        names = request.path.partition("/namespaces/")[2].split("/")[1:]
        return request.method == method and names[:1] == [kind] and "".join(names[2:]) == part

    return matches


adds_finalizer = writes("resourceclaims")
allocates = writes("resourceclaims", "status")
creates_claim = writes("resourceclaims", method="POST")
binds = writes("pods", "binding", method="POST")
names_claim = writes("pods", "status")


@pytest.fixture(scope="module")
def proxy(control_plane: ControlPlane) -> Iterator[FaultyProxy]:
    with FaultyProxy(control_plane) as running:
        yield running


@pytest.fixture(scope="module")
def proxied(
    control_plane: ControlPlane, bayplan_identity: Path, proxy: FaultyProxy, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A kubeconfig that reaches the API server through `proxy` only."""
    token = request_token(control_plane.client, NAMESPACE, SERVICE_ACCOUNT)
    return proxy.kubeconfig(tmp_path_factory.mktemp("proxied") / "kubeconfig", token)


@pytest.fixture(scope="module")
def bayplan(proxied: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BayplanProcess]:
    """A scheduler behind the proxy that has to survive the whole file."""
    with BayplanProcess(tmp_path_factory.mktemp("bayplan"), kubeconfig=proxied) as process:
        yield process
        assert_alive_without_a_traceback(process, but_of="kopf")


@pytest.fixture(autouse=True)
def devices(client: ApiClient, namespace: str) -> Iterator[None]:
    """Two nodes with as many devices each, and nothing of it left behind."""
    client.create_all("nodes", [node("n1"), node("n2")])
    client.create("deviceclasses", device_class(extendedResourceName=GPU))
    client.create_all("resourceslices", [resource_slice(name, DEVICES) for name in ("n1", "n2")])
    yield
    delete_devices(client, [namespace])


def assert_sound(client: ApiClient, namespace: str, bound: Collection[str]) -> None:
    """Nothing is allocated twice or reserved for a pod that is not bound where its devices are; all else is free.

    Free is what another pod gets: as many as are left over.
    """
    if bound:
        wait_bound(client, namespace, bound)
    wait_until(lambda: not _trouble(client, namespace), "soundness", detail=lambda: str(_trouble(client, namespace)))
    left = 2 * DEVICES - len(devices_of(client.list("resourceclaims", namespace)))
    others = [f"other-{index}" for index in range(left)]
    for name in others:
        create_with_own_claim(client, name, namespace)
    if others:
        wait_bound(client, namespace, others)
    taken = devices_of(client.list("resourceclaims", namespace))
    assert len(taken) == len(set(taken)) == 2 * DEVICES


def _trouble(client: ApiClient, namespace: str) -> list[str]:
    claims, nodes = client.list("resourceclaims", namespace), nodes_bound(client, namespace)
    uids = {each["metadata"]["uid"]: each["metadata"]["name"] for each in client.list("pods", namespace)}
    taken = devices_of(claims)
    found = [] if len(taken) == len(set(taken)) else [f"allocated twice: {taken}"]
    for claim in claims:
        pools = {pool for _, pool, _ in devices_of([claim])}
        users = claim.get("status", {}).get("reservedFor", [])
        lost = [each["name"] for each in users if nodes.get(uids.get(each["uid"], "")) not in pools]
        found += [f"{claim['metadata']['name']} is reserved for {name}, which is not on {pools}" for name in lost]
    return found


@pytest.mark.parametrize("write", [adds_finalizer, allocates], ids=["finalizer", "allocation"])
def test_a_claim_that_was_changed_meanwhile_is_read_again(
    client: ApiClient, namespace: str, proxy: FaultyProxy, write: Match
) -> None:
    answers: list[Object] = []

    def meddle() -> None:
        change = {"metadata": {"labels": {"n": str(len(answers))}}}
        answers.append(client.patch("resourceclaims", "p-own", change, namespace=namespace))

    proxy.inject(Meddle(meddle), write, times=3)
    create_with_own_claim(client, "p", namespace, count=2)
    assert_sound(client, namespace, ["p"])
    assert len(answers) == 3
    assert client.get("resourceclaims", "p-own", namespace)["metadata"]["labels"] == {"n": "2"}


@pytest.mark.parametrize("fault", [DropReply(), Reset(), Refuse(500)], ids=["lost", "unsent", "500"])
@pytest.mark.parametrize("write", [adds_finalizer, allocates, binds], ids=["finalizer", "allocation", "bind"])
def test_a_write_without_a_good_answer_costs_no_device(
    client: ApiClient, namespace: str, proxy: FaultyProxy, write: Match, fault: Fault
) -> None:
    proxy.inject(fault, write)
    create_with_own_claim(client, "p", namespace, count=2)
    client.create("resourceclaims", resource_claim("shared", namespace))
    names = ["q1", "q2"]
    client.create_all("pods", [claiming(name, namespace, "shared") for name in names])
    assert_sound(client, namespace, ["p", *names])
    assert sorted(reserved_for(client.get("resourceclaims", "shared", namespace))) == names


@pytest.mark.parametrize("fault", [DropReply(), Reset()], ids=["lost", "unsent"])
@pytest.mark.parametrize(
    "write",
    [creates_claim, adds_finalizer, allocates, names_claim, binds],
    ids=["create", "finalizer", "allocation", "pod", "bind"],
)
def test_a_claim_for_extended_resources_is_made_once_whatever_is_not_answered(
    client: ApiClient, namespace: str, proxy: FaultyProxy, write: Match, fault: Fault
) -> None:
    proxy.inject(fault, write)
    client.create("pods", pod("p", namespace, requests={GPU: "2"}))
    wait_bound(client, namespace, ["p"])
    wait_until(lambda: len(client.list("resourceclaims", namespace)) == 1, "one claim")
    (claim,) = client.list("resourceclaims", namespace)
    told = client.get("pods", "p", namespace)["status"]["extendedResourceClaimStatus"]
    assert told["resourceClaimName"] == claim["metadata"]["name"]
    assert_sound(client, namespace, ["p"])


@pytest.mark.parametrize("write", [adds_finalizer, allocates], ids=["finalizer", "allocation"])
def test_a_claim_deleted_before_it_is_allocated_takes_no_device_and_its_pod_waits_for_another(
    client: ApiClient, namespace: str, proxy: FaultyProxy, write: Match
) -> None:
    client.create("resourceclaims", resource_claim("c", namespace, count=2))
    proxy.inject(Meddle(lambda: client.delete("resourceclaims", "c", namespace=namespace)), write)
    client.create("pods", claiming("p", namespace, "c"))

    def is_going() -> bool:
        claims = client.list("resourceclaims", namespace)
        return not claims or "deletionTimestamp" in claims[0]["metadata"]

    wait_until(is_going, "the claim goes")
    let_go_of_claims(client, [namespace])
    wait_until(lambda: not client.list("resourceclaims", namespace), "the claim is gone")
    client.create("resourceclaims", resource_claim("c", namespace, count=2))
    assert_sound(client, namespace, ["p"])


def test_a_pod_deleted_before_its_bind_gives_up_a_claim_that_others_share(
    client: ApiClient, namespace: str, proxy: FaultyProxy
) -> None:
    client.create("resourceclaims", resource_claim("shared", namespace))
    client.create("pods", claiming("stays", namespace, "shared"))
    wait_bound(client, namespace, ["stays"])
    proxy.inject(Meddle(lambda: client.delete("pods", "goes", namespace=namespace, grace_seconds=0)), binds)
    client.create("pods", claiming("goes", namespace, "shared"))
    wait_until(lambda: len(client.list("pods", namespace)) == 1, "the pod is gone")
    assert_sound(client, namespace, ["stays"])
    assert reserved_for(client.get("resourceclaims", "shared", namespace)) == ["stays"]


def test_a_pod_deleted_before_its_bind_takes_the_claim_for_its_extended_resources_with_it(
    client: ApiClient, namespace: str, proxy: FaultyProxy
) -> None:
    proxy.inject(Meddle(lambda: client.delete("pods", "goes", namespace=namespace, grace_seconds=0)), binds)
    client.create("pods", pod("goes", namespace, requests={GPU: "2"}))
    wait_until(lambda: not client.list("pods", namespace), "the pod is gone")
    wait_until(lambda: not client.list("resourceclaims", namespace), "the claim is gone")
    assert_sound(client, namespace, [])


def test_a_pod_whose_bind_is_refused_is_bound_where_its_devices_are(
    client: ApiClient, namespace: str, proxy: FaultyProxy
) -> None:
    proxy.inject(Refuse(403), binds, times=2)
    create_with_own_claim(client, "p", namespace)
    assert_sound(client, namespace, ["p"])


def test_an_api_server_that_restarts_in_the_middle_of_allocations_costs_no_device(
    client: ApiClient, namespace: str, control_plane: ControlPlane
) -> None:
    names = [f"p{index}" for index in range(2 * DEVICES)]
    for name in names:
        create_with_own_claim(client, name, namespace)
    wait_until(lambda: nodes_bound(client, namespace), "the first bind")
    control_plane.restart_apiserver()
    assert_sound(client, namespace, names)


def test_a_scheduler_killed_between_two_writes_leaves_what_the_next_one_goes_on_with(
    client: ApiClient, namespace: str, proxy: FaultyProxy, proxied: Path, run_bayplan: RunBayplan
) -> None:
    flags = ["--scheduler-name", "short-lived"]
    first = run_bayplan(kubeconfig=proxied, arguments=flags)

    def create(own: str, extended: str) -> None:
        create_with_own_claim(client, own, namespace, count=2, scheduler="short-lived")
        client.create("pods", pod(extended, namespace, scheduler="short-lived", requests={GPU: "1"}))

    def claims(is_so: Callable[[Object], object]) -> int:
        return sum(bool(is_so(each)) for each in client.list("resourceclaims", namespace))

    proxy.inject(BlackHole(), allocates, times=2)
    create("p1", "p2")
    wait_until(lambda: claims(lambda claim: claim["metadata"].get("finalizers")) == 2, "two about to be allocated")
    proxy.inject(BlackHole(), binds, times=2)
    create("p3", "p4")
    wait_until(lambda: claims(reserved_for) == 2, "two about to be bound")
    first.kill()
    run_bayplan(arguments=flags)
    assert_sound(client, namespace, ["p1", "p2", "p3", "p4"])
