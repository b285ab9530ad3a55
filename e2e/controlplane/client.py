"""A small synchronous client for tests: JSON in, JSON out, one kept-alive connection per busy thread."""

import contextlib
import http.client
import json
import queue
import socket
import ssl
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlencode, urlsplit

Object = dict[str, Any]
Objects = list[Object]  # the class below has a method named list

_GROUPS = {
    "apis/admissionregistration.k8s.io/v1": (
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    ),
    "apis/apps/v1": ("deployments", "replicasets", "statefulsets", "daemonsets"),
    "apis/batch/v1": ("jobs",),
    "apis/coordination.k8s.io/v1": ("leases",),
    "apis/events.k8s.io/v1": ("events",),
    "apis/policy/v1": ("poddisruptionbudgets",),
    "apis/rbac.authorization.k8s.io/v1": ("clusterroles", "clusterrolebindings", "roles", "rolebindings"),
    "apis/resource.k8s.io/v1": (
        "deviceclasses",
        "devicetaintrules",
        "resourceclaims",
        "resourceclaimtemplates",
        "resourceslices",
    ),
    "apis/scheduling.k8s.io/v1": ("priorityclasses",),
    "apis/scheduling.k8s.io/v1beta1": ("podgroups",),
    "apis/scheduling.x-k8s.io/v1alpha1": ("podgroups.scheduling.x-k8s.io",),
    "apis/storage.k8s.io/v1": ("csinodes", "csidrivers", "csistoragecapacities", "storageclasses", "volumeattachments"),
}
_PREFIXES = {resource: prefix for prefix, resources in _GROUPS.items() for resource in resources}
_LIST_PAGE = 2000
# As client-go sends it: the API server keeps some parts of objects as they came, white space and all.
_COMPACT = (",", ":")
_IDLE_SECONDS = 30.0
_WORKERS = 16
_SHOWN_SECONDS = 0.1
_GONE = (404, 409)  # the pod has ended already, or another one has its name


class ApiError(RuntimeError):
    """The API server's refusal: `status` is the HTTP code, `reason` the Status object's reason."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason


def path_of(resource: str, *parts: str, namespace: str | None = None) -> str:
    """Returns the URL path of a resource, of one object of it, or of a subresource.

    `resource` is the plural name, with the group where two have it; what is in no table here is in the core group.
    """
    middle = ["namespaces", namespace] if namespace is not None else []
    return "/" + "/".join([_PREFIXES.get(resource, "api/v1"), *middle, resource.partition(".")[0], *parts])


class ApiClient:
    """Talks to one API server with fixed TLS credentials or a bearer token; safe to share between threads."""

    def __init__(self, url: str, tls: ssl.SSLContext, *, token: str | None = None) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 443
        self._tls = tls
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._idle: queue.LifoQueue[tuple[http.client.HTTPSConnection, float]] = queue.LifoQueue()

    def connect(self, timeout_seconds: float = 60.0) -> http.client.HTTPSConnection:
        """Returns a new connection that the caller owns; it opens with its first request."""
        return http.client.HTTPSConnection(self._host, self._port, timeout=timeout_seconds, context=self._tls)

    def send(
        self, connection: http.client.HTTPSConnection, path: str, headers: Mapping[str, str] | None = None
    ) -> http.client.HTTPResponse:
        """Sends a GET on a caller's own connection, for replies that are streams."""
        connection.request("GET", path, headers={**self._headers, **(headers or {})})
        return connection.getresponse()

    def exchange(
        self, method: str, path: str, body: object = None, content_type: str = "application/json"
    ) -> tuple[int, bytes]:
        """Does one request and returns the status and the raw reply, whatever the status; bytes go as they are.

        Raises:
            OSError, http.client.HTTPException: there was no complete reply.
        """
        data = body if body is None or isinstance(body, bytes) else json.dumps(body, separators=_COMPACT).encode()
        headers = {**self._headers, "Accept": "application/json"}
        if data is not None:
            headers["Content-Type"] = content_type
        connection = self._take_idle() or self.connect()
        try:
            connection.request(method, path, body=data, headers=headers)
            response = connection.getresponse()
            content = response.read()
        except BaseException:
            connection.close()
            raise
        self._idle.put((connection, time.monotonic()))
        return response.status, content

    def _take_idle(self) -> http.client.HTTPSConnection | None:
        """A kept connection the server will not have closed yet for idling."""
        while True:
            try:
                connection, since = self._idle.get_nowait()
            except queue.Empty:
                return None
            if time.monotonic() - since < _IDLE_SECONDS:
                return connection
            connection.close()

    def request(self, method: str, path: str, body: object = None, content_type: str = "application/json") -> Object:
        """Does one request and returns the decoded reply.

        Raises:
            ApiError: the API server refused.
        """
        status, content = self.exchange(method, path, body, content_type)
        if status < 300:
            decoded: Object = json.loads(content) if content else {}
            return decoded
        refusal: Object = {}
        with contextlib.suppress(ValueError):
            refusal = json.loads(content)
        message = refusal.get("message") or content.decode(errors="replace")
        raise ApiError(status, refusal.get("reason", ""), f"{method} {path}: {message}")

    def get(self, resource: str, name: str, namespace: str | None = None) -> Object:
        """Returns one object."""
        return self.request("GET", path_of(resource, name, namespace=namespace))

    def list(self, resource: str, namespace: str | None = None, **parameters: str) -> Objects:
        """Returns all objects, of one namespace or of all, page by page; parameters go to the query."""
        found: Objects = []
        query: dict[str, str] = {"limit": str(_LIST_PAGE), **parameters}
        while True:
            page = self.request("GET", f"{path_of(resource, namespace=namespace)}?{urlencode(query)}")
            found += page.get("items") or []
            following = page["metadata"].get("continue")
            if not following:
                return found
            query["continue"] = following

    def resource_version(self, resource: str) -> str:
        """Returns the resourceVersion a watch starts from to see everything that happens from now on."""
        version: str = self.request("GET", f"{path_of(resource)}?limit=1")["metadata"]["resourceVersion"]
        return version

    def create(self, resource: str, document: Object) -> Object:
        """Creates one object in the namespace its metadata names, and returns it; watches have shown it, or nearly."""
        created = self._create(resource, document)
        _let_watches_show(resource, [created])
        return created

    def create_all(self, resource: str, documents: Iterable[Object]) -> Objects:
        """Creates many objects at once and returns them in order, as `create`; the first refusal is raised."""
        with ThreadPoolExecutor(_WORKERS, thread_name_prefix="create") as pool:
            created = list(pool.map(lambda document: self._create(resource, document), documents))
        _let_watches_show(resource, created)
        return created

    def _create(self, resource: str, document: Object) -> Object:
        namespace = document["metadata"].get("namespace")
        return self.request("POST", path_of(resource, namespace=namespace), document)

    def patch(
        self,
        resource: str,
        name: str,
        change: object,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        content_type: str = "application/merge-patch+json",
    ) -> Object:
        """Patches one object, or a subresource of it, and returns it."""
        parts = (name, subresource) if subresource else (name,)
        return self.request("PATCH", path_of(resource, *parts, namespace=namespace), change, content_type)

    def bind(self, namespace: str, name: str, node: str) -> None:
        """Binds a pod to a node, as a scheduler does."""
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace},
            "target": {"kind": "Node", "name": node},
        }
        self.request("POST", path_of("pods", name, "binding", namespace=namespace), binding)

    def delete(
        self, resource: str, name: str, *, namespace: str | None = None, grace_seconds: int | None = None
    ) -> None:
        """Deletes one object; a grace period of 0 removes a pod at once, with or without a kubelet."""
        options = {} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        self.request("DELETE", path_of(resource, name, namespace=namespace), options)

    def end_pod(self, pod: Object) -> None:
        """Ends a pod as its kubelet does, at once; another one that has its name by now stays."""
        metadata = pod["metadata"]
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
        try:
            self.request("DELETE", path_of("pods", metadata["name"], namespace=metadata["namespace"]), options)
        except ApiError as error:
            if error.status not in _GONE:
                raise

    def delete_all(self, resource: str, namespace: str | None = None) -> None:
        """Deletes every object of a namespaced resource in one namespace, or of a cluster-wide one."""
        self.request("DELETE", path_of(resource, namespace=namespace), {"gracePeriodSeconds": 0})

    def close(self) -> None:
        """Closes the idle connections; the client stays usable."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._idle.get_nowait()[0].close()


def _let_watches_show(resource: str, created: Objects) -> None:
    """Wait a moment after nodes and pods on nodes: other watches show these than those of pods that want a node.

    A pod that is created right after them could overtake them on a busy machine, as with kube-scheduler and nodes.
    """
    if resource == "nodes" or any(each.get("spec", {}).get("nodeName") for each in created):
        time.sleep(_SHOWN_SECONDS)


def cut_off(connection: http.client.HTTPConnection | None) -> None:
    """Ends the watch that another thread reads from a connection, if there is one."""
    if connection is not None and connection.sock is not None:
        with contextlib.suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)
