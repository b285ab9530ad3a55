"""A real cluster with the production overlay's policies in force, and what they are tried on.

In the namespace `team` alice may do everything with pods. Of the pods there `ours` names bayplan, `strangers` and
`running`, which has a node, name another scheduler; `plain` and `dns` are in kube-system, `critical` is of system
priority.
"""

from collections.abc import Callable

from e2e.controlplane.installation import OVERLAYS, SERVICE_ACCOUNT, acting_as, write_kustomization
from e2e.controlplane.objects import claim, node, pod, storage_class, volume
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.dry_runs import (
    TEAM,
    refusal_of,
    try_bind,
    try_change,
    try_create,
    try_delete,
    try_event,
    try_patch,
    with_labels,
)

NAMESPACE = "bayplan-system"
TRUSTED = "trusted"
CEILING = "bayplan-priority-ceiling"
RBAC = "rbac.authorization.k8s.io"
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}
ZONE = "topology.kubernetes.io/zone"
OURS = {"kind": "PersistentVolumeClaim", "namespace": TEAM, "name": "wanted", "uid": "u1"}
DEVICE = {"example.com/gpu": "1"}
THEIRS = {**OURS, "name": "theirs", "uid": "u2"}


def install_production(plane: ControlPlane, *components: str) -> None:
    """Applies the production overlay, with components besides."""
    folder = plane.directory / "install"
    write_kustomization(folder, base=OVERLAYS / "production", components=components)
    plane.kubectl("apply", "-k", folder)


def guard(plane: ControlPlane) -> ControlPlane:
    """Puts the production overlay in force, with the right to evict besides, and creates a team; returns `plane`."""
    install_production(plane, "careful-preemption")
    admin = plane.client
    for name in (TEAM, TRUSTED, "another"):
        admin.create("namespaces", {"metadata": {"name": name}})
    for name, value in (("high", 1000000), ("fair", 999999)):
        admin.create("priorityclasses", {"metadata": {"name": name}, "value": value})
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}]
    admin.create("roles", {"metadata": {"name": "edit", "namespace": TEAM}, "rules": rules})
    binding = {
        "metadata": {"name": "alice", "namespace": TEAM},
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "edit"},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "alice"}],
    }
    admin.create("rolebindings", binding)
    admin.create("nodes", node("zoned", labels={ZONE: "a"}))
    admin.create("pods", pod("ours", TEAM, requests=DEVICE))
    admin.create("pods", pod("strangers", TEAM, scheduler="another", requests=DEVICE))
    admin.create("pods", pod("running", TEAM, scheduler="another", nodeName="zoned", terminationGracePeriodSeconds=30))
    admin.create("pods", pod("plain", "kube-system"))
    admin.create("pods", pod("dns", "kube-system", scheduler="another"))
    admin.create("storageclasses", storage_class("csi", "csi.example"))
    admin.create("persistentvolumeclaims", claim("wanted", TEAM, "csi"))
    source = {"driver": "csi.example", "volumeHandle": "h"}
    admin.create("persistentvolumes", volume("free", "csi", csi=source))
    admin.create("persistentvolumes", volume("named", "csi", csi=source, claimRef={**OURS, "uid": ""}))
    admin.create("persistentvolumes", volume("taken", "csi", csi=source, claimRef=THEIRS))
    _wait_until_in_force(plane)
    admin.patch("configmaps", CEILING, {"data": {"namespaces": f"kube-system {TRUSTED}"}}, namespace=NAMESPACE)
    wait_until(lambda: not refusal_of(lambda: try_create(admin, TRUSTED, "high")), "the changed parameters")
    admin.create("pods", pod("critical", TRUSTED, priorityClassName="system-cluster-critical"))
    return plane


def _wait_until_in_force(plane: ControlPlane) -> None:
    """The API server takes policies, and their parameters, up a moment after they are created."""
    with acting_as(plane, NAMESPACE, SERVICE_ACCOUNT) as scheduler:
        attempts: dict[str, Callable[[], object]] = {
            "the policy on victims": lambda: try_delete(scheduler, "kube-system", "plain"),
            "the policy on status": lambda: try_patch(scheduler, TEAM, "strangers", conditions=[UNSCHEDULABLE]),
            "the ceiling of priorities": lambda: try_create(plane.client, TEAM, "high"),
            "the policy on bindings": lambda: try_bind(scheduler, annotations={"a": "b"}),
            "the policy on Events": lambda: try_event(scheduler, TEAM, "kubelet"),
            "the policy on claims": lambda: try_change(scheduler, "persistentvolumeclaims", "wanted", with_labels()),
            "the policy on volumes": lambda: try_change(scheduler, "persistentvolumes", "free", with_labels()),
        }
        for what, attempt in attempts.items():
            wait_until(lambda attempt=attempt: refusal_of(attempt), what)  # type: ignore[misc]  # a default is no argument
