"""The fake API server with the discovery that kopf reads before it watches."""

from aiohttp import web
from tests.faults.api_server import FakeApiServer, Object
from tests.faults.faults import RequestFault

PODS = "/api/v1/pods"
NODES = "/api/v1/nodes"
CLAIMS = "/api/v1/persistentvolumeclaims"

_VERBS = ["get", "list", "watch", "patch"]
_RESOURCES = [
    {"name": "namespaces", "singularName": "namespace", "namespaced": False, "kind": "Namespace", "verbs": _VERBS},
    {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": _VERBS},
]
_DISCOVERY = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": _RESOURCES},
    "/apis": {"kind": "APIGroupList", "groups": []},
}


class KubernetesApi(FakeApiServer):
    """A fake API server that kopf can start on."""

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if request.path in _DISCOVERY:
            return web.json_response(_DISCOVERY[request.path])
        return await super()._serve(request)


class Meanwhile(RequestFault):
    """Something happens while the server is about to answer."""

    def __init__(self, happen):
        self.happen = happen

    async def serve(self, request, act):
        answer = await act()
        self.happen()
        return answer


def pod(name: str, *, scheduler: str = "bayplan", cpu: str = "1", **spec: object) -> Object:
    """A pending pod as the API server stores it."""
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": scheduler, "containers": containers, **spec},
        "status": {"phase": "Pending"},
    }


def node(name: str, *, cpu: str = "4") -> Object:
    """A node that takes pods."""
    return {"metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}}}


def claim(name: str, *, volume: object = "") -> Object:
    """A claim that is bound to `volume` if that is given."""
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    return {"metadata": metadata, "spec": {"volumeName": volume}}
