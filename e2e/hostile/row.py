"""What a row of the table of hostile inputs consists of: pods with their verdicts, and requests with their answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from e2e.controlplane.client import Object, path_of
from e2e.controlplane.objects import pod

NAMESPACE = "hostile"
BOUND = ""
GATED = "Scheduling is blocked"
BINDS, FAILS, SILENT = "binds it", "fails and tries again for ever", "says nothing"
"""What else a scheduler may do with a pod than wait with a message."""
MERGE_PATCH = "application/merge-patch+json"


@dataclass(frozen=True)
class Case:
    """A pod that the API server takes: `verdict` is part of the message, or empty for a pod that is bound.

    `kube_scheduler` is what kube-scheduler does where that is not the same: BINDS, FAILS, SILENT or its message.
    """

    verdict: str
    spec: Object = field(default_factory=dict)
    annotations: Object = field(default_factory=dict)
    labels: Object = field(default_factory=dict)
    metadata: Object = field(default_factory=dict)
    kube_scheduler: str = ""


@dataclass(frozen=True)
class Request:
    """A request of a user's, and the status by which the API server answers it; bytes are sent as they are.

    `status_before_1_37` is an older API server's answer, if it is another. `depends_on_a_watch` says that the API
    server's admission hears of what the answer depends on by a watch, some moments later.
    """

    status: int
    method: str
    path: str
    body: object = None
    content_type: str = "application/json"
    status_before_1_37: int = 0
    depends_on_a_watch: bool = False


@dataclass(frozen=True)
class Row:
    """One hostile input: `number` is its H number, `what` says it in words for the documentation.

    `before` are requests that set the scene before any pod comes, `requests` those of the input itself. `note` adds
    what no pod's verdict says; `shown_by` names tests of what is no pod and no request.
    """

    number: int
    what: str
    pods: Mapping[str, Case] = field(default_factory=dict)
    requests: tuple[Request, ...] = ()
    before: tuple[Request, ...] = ()
    note: str = ""
    shown_by: tuple[str, ...] = ()


def create(status: int, resource: str, document: Object) -> Request:
    """Returns the creation of an object in the namespace its metadata names."""
    return Request(status, "POST", path_of(resource, namespace=document["metadata"].get("namespace")), document)


def create_pod(status: int, name: str = "never", *, labels: Mapping[str, str] | None = None, **spec: object) -> Request:
    """Returns the creation of a pod of another scheduler's with these fields of its spec."""
    document = pod(name, NAMESPACE, scheduler="another", labels=labels)
    document["spec"] |= spec
    return create(status, "pods", document)


def refused(*specs: Object, status: int = 422) -> tuple[Request, ...]:
    """Returns creations of pods that the API server refuses, one for each of these specs."""
    return tuple(create_pod(status, **spec) for spec in specs)


def change(
    status: int, name: str, patch: Object, *, resource: str = "pods", subresource: str = "", namespaced: bool = True
) -> Request:
    """Returns a patch of an object of the scene."""
    parts = (name, subresource) if subresource else (name,)
    path = path_of(resource, *parts, namespace=NAMESPACE if namespaced else None)
    return Request(status, "PATCH", path, patch, MERGE_PATCH)


def delete(status: int, name: str, options: Object | None = None) -> Request:
    """Returns the deletion of a pod of the scene."""
    return Request(status, "DELETE", path_of("pods", name, namespace=NAMESPACE), options or {})


def bind(
    status: int, pod_name: str, node: str, *, kind: str = "Node", before_1_37: int = 0, **metadata: object
) -> Request:
    """Returns the binding of a pod to a node; `metadata` is that of the Binding, its name if it is another."""
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod_name, "namespace": NAMESPACE, **metadata},
        "target": {"kind": kind, "name": node},
    }
    path = path_of("pods", pod_name, "binding", namespace=NAMESPACE)
    return Request(status, "POST", path, body, status_before_1_37=before_1_37)
