"""The cluster that the hostile pods come to, and the end of it all."""

from e2e.controlplane.client import ApiClient, Object, Objects
from e2e.controlplane.objects import node, pod
from e2e.controlplane.waiting import wait_until
from e2e.hostile.api_requests import ODD
from e2e.hostile.row import NAMESPACE, Case, Request
from e2e.hostile.table import CASES, ROWS

LABELS = {"pool": "plain", "size": "5"}
NODES = 20


def set_up(client: ApiClient, nodes: int = NODES) -> None:
    """Creates the namespace, plain nodes, one to be overfilled, and all that rows have before their pods.

    Raises:
        AssertionError: the API server answered otherwise than the table says.
    """
    if not client.list("namespaces", fieldSelector=f"metadata.name={NAMESPACE}"):
        client.create("namespaces", {"metadata": {"name": NAMESPACE}})
    client.create_all("nodes", [_plain_node(index) for index in range(nodes)])
    client.create("nodes", node("overfull", labels={"pool": "odd"}, taints=[ODD]))
    for row in ROWS:
        for request in row.before:
            send(client, request)


def _plain_node(index: int) -> Object:
    labels = {**LABELS, "topology.kubernetes.io/zone": f"zone-{index % 2}"}
    return node(f"n{index}", pods="500", labels=labels)


def send(client: ApiClient, request: Request) -> None:
    """Sends a request and fails unless it is answered as the table says."""
    if request.depends_on_a_watch:
        dry = f"{request.path}?dryRun=All"
        wait_until(lambda: client.exchange(request.method, dry, request.body)[0] == request.status, "the admission")
    status, content = client.exchange(request.method, request.path, request.body, request.content_type)
    shown = content[:500].decode(errors="replace")
    expected = {request.status, request.status_before_1_37 or request.status}
    assert status in expected, f"{request.method} {request.path}: {status}, not {request.status}: {shown}"


def pod_documents(scheduler: str = "bayplan") -> Objects:
    """Returns the pods of all rows, in the table's order."""
    return [document_of(name, case, scheduler) for name, case in CASES.items()]


def document_of(name: str, case: Case, scheduler: str = "bayplan", namespace: str = NAMESPACE) -> Object:
    """Returns the pod of a case; it asks for 10m of CPU unless its containers say otherwise."""
    spec: Object = {"requests": {"cpu": "10m"}, **case.spec}
    document = pod(name, namespace, scheduler=scheduler, labels=case.labels, **spec)
    document["metadata"] |= {"annotations": case.annotations, **case.metadata}
    return document


def delete_pods(client: ApiClient) -> None:
    """Deletes the pods, whatever holds them."""
    client.delete_all("pods", NAMESPACE)
    for held in client.list("pods", NAMESPACE):
        client.patch("pods", held["metadata"]["name"], {"metadata": {"finalizers": None}}, namespace=NAMESPACE)


def take_down(client: ApiClient) -> None:
    """Deletes everything that the table made but its namespace."""
    delete_pods(client)
    client.delete_all("nodes")
    for resource in ("poddisruptionbudgets", "leases", "events", "persistentvolumeclaims"):
        client.delete_all(resource, NAMESPACE)
    for kept in client.list("persistentvolumeclaims", NAMESPACE):
        name, let_go = kept["metadata"]["name"], {"metadata": {"finalizers": None}}
        client.patch("persistentvolumeclaims", name, let_go, namespace=NAMESPACE)
    for resource in ("priorityclasses", "storageclasses", "persistentvolumes"):
        names = [found["metadata"]["name"] for found in client.list(resource)]
        for name in (each for each in names if each.startswith(NAMESPACE)):
            # No controller is there to let go of a volume.
            client.patch(resource, name, {"metadata": {"finalizers": None}})
            client.delete(resource, name)
