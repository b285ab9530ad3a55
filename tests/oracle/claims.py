"""The claims on devices of pods: made as controllers make them, and told as they were allocated."""

import contextlib
from collections.abc import Iterable, Mapping, Sequence

from e2e.controlplane.client import ApiClient, ApiError
from e2e.controlplane.waiting import wait_until
from tests.oracle.case import Object

RESOURCE = "resourceclaims"
DEALLOCATED = "deallocation of ResourceClaim completed"
"""After this the pod is tried again at once, at no time that could be told."""


def claim_names(pod: Object) -> list[str]:
    """The names of a pod's claims; one of a template is made as `<pod>-<entry>`."""
    return [
        each.get("resourceClaimName") or f"{pod['metadata']['name']}-{each['name']}"
        for each in pod["spec"].get("resourceClaims", ())
    ]


def extended_name(pod: Object) -> str:
    """The name of the claim for a pod's extended resources, without the random letters at its end."""
    return f"{pod['metadata']['name']}-extended-resources-"


def claims_of(client: ApiClient, pod: Object) -> list[Object]:
    """The claims of a pod that is bound; the one for its extended resources under the name above."""
    namespace = pod["metadata"]["namespace"]
    claims = [client.get(RESOURCE, each, namespace) for each in claim_names(pod)]
    bound = client.get("pods", pod["metadata"]["name"], namespace)
    if told := bound["status"].get("extendedResourceClaimStatus"):
        claim = client.get(RESOURCE, told["resourceClaimName"], namespace)
        claim["metadata"]["name"] = extended_name(pod)
        claims.append(claim)
    return claims


def make_claims(client: ApiClient, pod: Object, uid: str, templates: Iterable[Object]) -> None:
    """Makes the claims of a pod's templates, and tells their names in its status."""
    metadata = pod["metadata"]
    namespace, statuses = metadata["namespace"], []
    by_name = {(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in templates}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": uid, "controller": True}
    for entry, name in zip(pod["spec"].get("resourceClaims", ()), claim_names(pod), strict=True):
        if "resourceClaimTemplateName" in entry:
            spec = by_name[namespace, entry["resourceClaimTemplateName"]]["spec"]["spec"]
            about = {"name": name, "namespace": namespace, "ownerReferences": [owner]}
            create_claim(client, {"metadata": about, "spec": spec})
            statuses.append({"name": entry["name"], "resourceClaimName": name})
    if statuses:
        change = {"status": {"resourceClaimStatuses": statuses}}
        client.patch("pods", metadata["name"], change, namespace=namespace, subresource="status")


def create_claim(client: ApiClient, document: Object) -> None:
    """Makes a claim, after the end of one that has its name and that a last write of kube-scheduler's kept.

    Raises:
        TimeoutError: that one stays.
    """
    wait_until(lambda: _create_once(client, document), "the end of a claim of that name")


def _create_once(client: ApiClient, document: Object) -> bool:
    """Whether the claim was made."""
    about = document["metadata"]
    try:
        client.create(RESOURCE, document)
    except ApiError as error:
        if error.status != 409:
            raise
        with contextlib.suppress(ApiError):
            client.patch(RESOURCE, about["name"], {"metadata": {"finalizers": None}}, namespace=about["namespace"])
        return False
    return True


def allocated(claims: Sequence[Object]) -> dict[str, Object]:
    """What claims have, by their names; a share's random ID and the time of the allocation are left out."""
    found = {}
    for claim in claims:
        if allocation := claim.get("status", {}).get("allocation"):
            devices = allocation["devices"]
            told = {"results": [_without_id(each) for each in devices.get("results", ())]}
            told |= {"config": devices["config"]} if devices.get("config") else {}
            told |= {"nodeSelector": allocation["nodeSelector"]} if allocation.get("nodeSelector") else {}
            found[claim["metadata"]["name"]] = told
    return found


def let_go(client: ApiClient, namespaces: Iterable[str]) -> None:
    """Deletes all claims of namespaces, whoever has devices; a last write of kube-scheduler's may keep one for a while.

    Raises:
        TimeoutError: one stays.
    """
    for namespace in namespaces:
        wait_until(lambda namespace=namespace: not _let_go_once(client, namespace), "the end of all claims")


def _let_go_once(client: ApiClient, namespace: str) -> list[Object]:
    """The claims there were."""
    claims = client.list(RESOURCE, namespace)
    for claim in claims:
        name, change = claim["metadata"]["name"], {"metadata": {"finalizers": None}}
        with contextlib.suppress(ApiError):
            client.patch(RESOURCE, name, change, namespace=namespace)
            client.delete(RESOURCE, name, namespace=namespace)
    return claims


def _without_id(result: Mapping[str, object]) -> Object:
    told = {key: value for key, value in result.items() if key != "shareID"}
    return told | {"shared": True} if "shareID" in result else told
