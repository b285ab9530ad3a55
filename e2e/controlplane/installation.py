"""Installs the shipped manifests as a user does, and hands out the identity they make."""

import contextlib
import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.client import ApiClient
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.service_account import request_token

MANIFESTS = REPOSITORY / "manifests" / "base"
COMPONENTS = REPOSITORY / "manifests" / "components"
OVERLAYS = REPOSITORY / "manifests" / "overlays"
COMPONENT_NAMES = frozenset(str(path.parent.relative_to(COMPONENTS)) for path in COMPONENTS.rglob("kustomization.yaml"))
CLUSTER_WIDE = frozenset(
    {
        "ClusterRole",
        "ClusterRoleBinding",
        "FlowSchema",
        "Namespace",
        "PriorityLevelConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }
)
"""The kinds among the shipped ones that are in no namespace."""
NAMESPACE = "kube-system"
SERVICE_ACCOUNT = "bayplan"
ALL_RIGHTS = ("careful-preemption", "default-spreading", "devices", "preemption", "volumes")
"""The components that give the ServiceAccount a right; the configuration is that of `preemption`."""


def install_bayplan(plane: ControlPlane, *, without: Collection[str] = ()) -> Path:
    """Applies manifests/base with the components that give rights; returns a kubeconfig with a token of its account.

    The scheduler under test then has the shipped rights and no others. Where controllers would make pods of its
    Deployment, `without` names that kind.
    """
    folder = plane.directory / "install"
    write_kustomization(folder, components=ALL_RIGHTS)
    rendered = plane.directory / "bayplan.yaml"
    rendered.write_text(yaml.safe_dump_all([each for each in kustomize(plane, folder) if each["kind"] not in without]))
    plane.kubectl("apply", "-f", rendered)
    return plane.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)


def granted(plane: ControlPlane, namespace: str = NAMESPACE) -> set[tuple[str, str]]:
    """Returns verbs and resources of all roles bound to the account; no two groups have a resource of one name."""
    rules: list[dict[str, Any]] = []
    for kind, where in (("clusterrole", ()), ("role", ("-n", namespace))):
        for binding in json.loads(plane.kubectl("get", f"{kind}binding", *where, "-o", "json"))["items"]:
            if any(subject["name"] == SERVICE_ACCOUNT for subject in binding.get("subjects", [])):
                name = binding["roleRef"]["name"]
                rules += json.loads(plane.kubectl("get", kind, name, *where, "-o", "json"))["rules"]
    return {(verb, resource) for rule in rules for verb in rule["verbs"] for resource in rule.get("resources", [])}


@contextlib.contextmanager
def acting_as(plane: ControlPlane, namespace: str, service_account: str) -> Iterator[ApiClient]:
    """A client with a token of a service account and no client certificate."""
    client = ApiClient(plane.url, plane.tls(None), token=request_token(plane.client, namespace, service_account))
    yield client
    client.close()


def write_kustomization(
    folder: Path, *, base: Path = MANIFESTS, components: Iterable[str] = (), **fields: object
) -> None:
    """Writes a kustomization as a user does who puts one on top of the shipped ones; `fields` are others of it."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [_relative(base, folder)],
        "components": [_relative(COMPONENTS / name, folder) for name in components],
        **fields,
    }
    (folder / "kustomization.yaml").write_text(json.dumps(document))  # JSON is YAML


def kustomize(plane: ControlPlane, folder: Path) -> list[dict[str, Any]]:
    """Returns the objects of a kustomization."""
    return list(yaml.safe_load_all(plane.kubectl("kustomize", folder)))


def _relative(target: Path, folder: Path) -> str:
    # kustomize takes no absolute paths.
    return str(Path(*[".."] * (len(folder.resolve().parts) - 1), *target.resolve().parts[1:]))
