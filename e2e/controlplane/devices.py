"""Builders of what dynamic resources are made of, and the parts of drivers and controllers that scenarios play."""

from collections.abc import Collection, Iterable

from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.objects import pod

DRIVER = "gpu.example.com"
CLASS = "gpu"


def device_class(name: str = CLASS, expression: str = f'device.driver == "{DRIVER}"', **spec: object) -> Object:
    """Returns a class of the devices that an expression is true of."""
    return {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": expression}}], **spec}}


def resource_slice(node: str, count: int, *, driver: str = DRIVER, **fields: object) -> Object:
    """Returns the only slice of a node's pool; `fields` are of each device."""
    devices = [{"name": f"gpu-{index}", **fields} for index in range(count)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return {
        "metadata": {"name": f"{node}-{driver}"},
        "spec": {"driver": driver, "nodeName": node, "pool": pool, "devices": devices},
    }


def resource_claim(
    name: str, namespace: str, *, count: int = 1, owner: Object | None = None, class_name: str = CLASS, **fields: object
) -> Object:
    """Returns a claim on so many devices; with an owner it is that pod's, as if made from a template."""
    metadata: Object = {"name": name, "namespace": namespace}
    if owner is not None:
        reference = {"apiVersion": "v1", "kind": "Pod", "name": owner["metadata"]["name"]}
        metadata["ownerReferences"] = [{**reference, "uid": owner["metadata"]["uid"], "controller": True}]
    exactly = {"deviceClassName": class_name, "allocationMode": "ExactCount", "count": count, **fields}
    requests = [{"name": "gpus", "exactly": exactly}]
    return {"metadata": metadata, "spec": {"devices": {"requests": requests}}}


def claiming(name: str, namespace: str, *claims: str, **fields: object) -> Object:
    """Returns a pod that names claims; `fields` are of its spec, `scheduler` among them."""
    entries = [{"name": f"c{index}", "resourceClaimName": claim} for index, claim in enumerate(claims)]
    return pod(name, namespace, resourceClaims=entries, **fields)  # type: ignore[arg-type]  # of any kind


def create_with_own_claim(client: ApiClient, name: str, namespace: str, **fields: object) -> Object:
    """Creates a pod with a template, and then its claim, as the claim controller makes it; returns the pod."""
    entry = {"name": "own", "resourceClaimTemplateName": "template"}
    scheduler = str(fields.pop("scheduler", "bayplan"))
    made = client.create("pods", pod(name, namespace, scheduler=scheduler, resourceClaims=[entry]))
    client.create("resourceclaims", resource_claim(f"{name}-own", namespace, owner=made, **fields))  # type: ignore[arg-type]
    statuses = [{"name": "own", "resourceClaimName": f"{name}-own"}]
    client.patch(
        "pods", name, {"status": {"resourceClaimStatuses": statuses}}, namespace=namespace, subresource="status"
    )
    return made


def devices_of(claims: Iterable[Object]) -> list[tuple[str, str, str]]:
    """Returns what claims have, each device as its driver, pool and name."""
    allocations = [claim.get("status", {}).get("allocation") or {"devices": {}} for claim in claims]
    results = [each for allocation in allocations for each in allocation["devices"].get("results", [])]
    return sorted((each["driver"], each["pool"], each["device"]) for each in results)


def reserved_for(claim: Object) -> list[str]:
    """Returns the names of the pods that may use a claim."""
    return [each["name"] for each in claim.get("status", {}).get("reservedFor", [])]


def let_go_of_claims(client: ApiClient, namespaces: Iterable[str]) -> None:
    """Takes the finalizers off the claims of namespaces, as the claim controller does, so that they can be deleted."""
    for namespace in namespaces:
        for claim in client.list("resourceclaims", namespace):
            change = {"metadata": {"finalizers": None}}
            client.patch("resourceclaims", claim["metadata"]["name"], change, namespace=namespace)


def delete_devices(client: ApiClient, namespaces: Collection[str] = ()) -> None:
    """Deletes classes, slices and rules, and the claims of namespaces."""
    let_go_of_claims(client, namespaces)
    for namespace in namespaces:
        client.delete_all("resourceclaims", namespace)
    for kind in ("deviceclasses", "resourceslices", "devicetaintrules"):
        client.delete_all(kind)
