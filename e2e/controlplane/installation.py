"""Installs the shipped manifests as a user does, and hands out the identity they make."""

from collections.abc import Collection
from pathlib import Path

import yaml

from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.plane import ControlPlane

MANIFESTS = REPOSITORY / "manifests" / "base"
NAMESPACE = "kube-system"
SERVICE_ACCOUNT = "bayplan"


def install_bayplan(plane: ControlPlane, *, without: Collection[str] = ()) -> Path:
    """Applies manifests/base and returns a kubeconfig with a token of its service account.

    The scheduler under test then has the shipped rights and no others. Where controllers would make pods of its
    Deployment, `without` names that kind.
    """
    objects = [
        each for each in yaml.safe_load_all(plane.kubectl("kustomize", MANIFESTS)) if each["kind"] not in without
    ]
    rendered = plane.directory / "bayplan.yaml"
    rendered.write_text(yaml.safe_dump_all(objects))
    plane.kubectl("apply", "-f", rendered)
    return plane.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
