"""Requests that are tried: the API server admits or refuses them and keeps nothing."""

from collections.abc import Callable

from e2e.controlplane.client import ApiClient, ApiError, Object, path_of
from e2e.controlplane.objects import pod

TEAM = "team"
DRY_RUN = "?dryRun=All"
MERGE_PATCH = "application/merge-patch+json"


def try_create(user: ApiClient, namespace: str, class_name: str, scheduler: str = "bayplan") -> Object:
    document = pod("new", namespace, scheduler=scheduler, priorityClassName=class_name)
    return user.request("POST", path_of("pods", namespace=namespace) + DRY_RUN, document)


def try_delete(user: ApiClient, namespace: str, name: str, **options: object) -> Object:
    # With a body, what the query says does not count.
    return user.request("DELETE", path_of("pods", name, namespace=namespace), {"dryRun": ["All"], **options})


def try_evict(user: ApiClient, namespace: str, name: str, **options: object) -> Object:
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": {"dryRun": ["All"], **options},
    }
    return user.request("POST", path_of("pods", name, "eviction", namespace=namespace) + DRY_RUN, body)


def try_patch(user: ApiClient, namespace: str, name: str, metadata: Object | None = None, **status: object) -> Object:
    path = path_of("pods", name, "status", namespace=namespace) + DRY_RUN
    body = {"metadata": metadata or {}, "status": status}
    return user.request("PATCH", path, body, "application/strategic-merge-patch+json")


def try_bind(user: ApiClient, node_name: str = "zoned", **metadata: Object) -> Object:
    path = path_of("pods", "ours", "binding", namespace=TEAM) + DRY_RUN
    target = {"kind": "Node", "name": node_name}
    return user.request("POST", path, {"metadata": {"name": "ours", **metadata}, "target": target})


def try_event(user: ApiClient, namespace: str, controller: str) -> Object:
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events{DRY_RUN}"
    return user.request("POST", path, an_event(namespace, controller))


def an_event(namespace: str, controller: str) -> Object:
    """An Event about a pod as a controller writes it."""
    return {
        "metadata": {"name": f"about-ours.{controller}", "namespace": namespace},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": controller,
        "reportingInstance": f"{controller}-0",
        "type": "Normal",
        "reason": "Scheduled",
        "action": "Binding",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": "ours"},
        "note": "n",
    }


def try_change(user: ApiClient, resource: str, name: str, change: Object) -> Object:
    """Patches a claim or a volume."""
    namespace = TEAM if resource == "persistentvolumeclaims" else None
    return user.request("PATCH", path_of(resource, name, namespace=namespace) + DRY_RUN, change, MERGE_PATCH)


def with_labels() -> Object:
    return {"metadata": {"labels": {"a": "b"}}}


def with_annotations(**notes: str | None) -> Object:
    return {"metadata": {"annotations": notes}}


def refusal_of(attempt: Callable[[], object]) -> str:
    """Why a request is not allowed, nothing if it is."""
    try:
        attempt()
    except ApiError as error:
        if error.status != 403:
            raise
        return str(error)
    return ""
