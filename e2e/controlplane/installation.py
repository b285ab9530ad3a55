"""Installs the shipped manifests as a user does, and hands out the identity they make."""

from pathlib import Path

from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.plane import ControlPlane

MANIFESTS = REPOSITORY / "manifests" / "base"
NAMESPACE = "kube-system"
SERVICE_ACCOUNT = "bayplan"


def install_bayplan(plane: ControlPlane) -> Path:
    """Applies manifests/base and returns a kubeconfig with a token of its service account.

    The scheduler under test then has the shipped rights and no others.
    """
    plane.kubectl("apply", "-k", MANIFESTS)
    return plane.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
