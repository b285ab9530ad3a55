"""What the pages on installing and upgrading say to type does so, has a pod placed, and takes everything away again.

So does what the page on monitoring says for a Prometheus without the operator.

The cluster has kube-scheduler, the controllers, and nodes that kwok plays, so that the Deployment's pods become ready.
What their containers would run runs beside it. README's commands are typed in e2e/playground.
"""

from collections.abc import Callable, Iterator, Sequence

import pytest
from e2e.conftest import StartControlPlane
from e2e.controlplane.client import ApiError
from e2e.controlplane.deployed import DeployedReplica, pod_of_deployment
from e2e.controlplane.installation import OVERLAYS, SERVICE_ACCOUNT
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.process import STOP_SECONDS, stop_all
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.monitoring import COMPONENT
from e2e.scenarios.outcomes import assert_alive_without_a_traceback, node_of
from e2e.scenarios.typed_commands import Shell, typed_in
from tests.console_blocks import Command

pytestmark = pytest.mark.controlplane

NAMESPACE = "bayplan-system"
WAIT_SECONDS = 60.0
INSTALLS = ("kubectl apply -k", "helm install")
UNINSTALLS = ("kubectl delete -k", "helm uninstall")
PRINTED = {
    "kubectl get events": "Successfully assigned default/web to node-",
    "kubectl --namespace bayplan-system get lease bayplan": "bayplan",
    "kubectl --namespace bayplan-system rollout status": 'deployment "bayplan" successfully rolled out',
    "kubectl run critical": "priority 2000001000 is more than 999999",
    "kubectl --namespace kube-system delete pod": "bayplan ends no pod in kube-system",
}
"""How commands begin that have something to tell, and what."""

NOT_TYPED = {
    "make ": "needs Docker",
    "docker ": "needs Docker",
    "kind ": "needs a container runtime",
    "kubectl --namespace bayplan-system logs": "kwok's containers have no logs",
}
"""How commands begin that are not typed, and why."""


def _starts(command: Command, beginnings: Sequence[str]) -> bool:
    return command.text.startswith(tuple(beginnings))


def _typed(document: str) -> list[Command]:
    """The commands of a document that can be typed here."""
    return [command for command in typed_in(document) if not _starts(command, list(NOT_TYPED))]


class Site:
    """A cluster, and somebody who types; as long as a Deployment is installed, one of its replicas runs."""

    def __init__(self, plane: ControlPlane, shell: Shell, new_replica: Callable[[], DeployedReplica]) -> None:
        self.plane = plane
        self._shell = shell
        self._new_replica = new_replica
        self._running: list[DeployedReplica] = []

    def type(self, commands: Sequence[Command]) -> None:
        """Types them one after the other; each must do, or print, what it is for."""
        for command in commands:
            if _starts(command, UNINSTALLS):
                self.stop()
            wanted = [text for start, text in PRINTED.items() if command.text.startswith(start)]
            wanted += ["\n".join(command.output)] if command.output else []
            if wanted:
                self._wait_printed(command, wanted[0])
            else:
                code, printed = self._shell.type(command.text)
                assert code == 0, f"line {command.line}: {command.text}\n{printed}"
            if _starts(command, INSTALLS) and not self._running:
                assert "deployment.apps/bayplan" in self.left()
                self._running.append(self._new_replica())
                self._running[0].wait_ready()

    def _wait_printed(self, command: Command, wanted: str) -> None:
        """Types a command that changes nothing until it tells what it should: who types is faster than a cluster."""
        last: list[str] = []

        def told() -> bool:
            last[:] = [self._shell.type(command.text)[1]]
            return wanted in last[0]

        what = f"{command.text!r} printing {wanted!r}"
        wait_until(told, what, timeout_seconds=WAIT_SECONDS, detail=lambda: f"\n{last[0]}")

    def left(self) -> str:
        """What there still is of the installation."""
        kinds = self._shell.type("kubectl api-resources --verbs=list --output=name | grep -v componentstatuses")[
            1
        ].split()
        selected = "--all-namespaces --selector=app.kubernetes.io/part-of=bayplan --output=name"
        return self._shell.type(f"kubectl get {','.join(kinds)} {selected} 2>/dev/null")[1]

    def stop(self) -> None:
        """Ends the replica, which must have run without an error."""
        for process in self._running:
            assert_alive_without_a_traceback(process)
        stop_all(self._running, STOP_SECONDS)
        self._running.clear()


@pytest.fixture(scope="module")
def plane(start_control_plane: StartControlPlane) -> ControlPlane:
    """A cluster with two nodes and a pod of etcd."""
    plane = start_control_plane(ControlPlaneOptions(kube_controller_manager=True, kwok=True))
    plane.start_kube_scheduler({})
    client = plane.client
    client.create_all("nodes", [node(f"node-{index}", cpu="8") for index in range(2)])
    for namespace in ("default", "kube-system"):
        wait_until(lambda where=namespace: client.list("serviceaccounts", where), "a default service account")  # type: ignore[misc]
    client.create("pods", pod("etcd", "kube-system", labels={"component": "etcd"}, scheduler="default-scheduler"))
    return plane


@pytest.fixture
def site(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The cluster, as it was before anything was typed."""
    site = Site(
        plane,
        Shell(plane, tmp_path_factory.mktemp("checkout")),
        lambda: DeployedReplica(
            pod_of_deployment(plane.client, NAMESPACE, "replica"),
            plane,
            tmp_path_factory.mktemp("replica"),
            kubeconfig=plane.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT),
        ),
    )
    yield site
    site.stop()
    plane.kubectl("delete", "pod", "web", "--namespace=default", "--force", "--ignore-not-found")
    plane.client.delete_all("events", "default")
    plane.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found")


def _assert_taken_away(site: Site) -> None:
    wait_until(lambda: not site.left(), "the installation to be gone", timeout_seconds=WAIT_SECONDS, detail=site.left)
    assert node_of(site.plane.client, "default", "web").startswith("node-")


def test_the_page_on_installing_and_that_on_upgrading_do_so_with_kustomize(site: Site) -> None:
    *installing, uninstalling = [each for each in _typed("docs/install.md") if not _starts(each, ["helm "])]
    site.type(installing)
    site.type(_typed("docs/upgrade.md"))
    site.type([uninstalling])
    _assert_taken_away(site)
    with pytest.raises(ApiError, match="404"):
        site.plane.client.get("namespaces", NAMESPACE)


def test_the_page_on_installing_does_so_with_helm(site: Site) -> None:
    page = _typed("docs/install.md")
    (installing,) = [index for index, each in enumerate(page) if _starts(each, ["helm install"])]
    site.type([each for each in page[installing:] if not _starts(each, UNINSTALLS)])
    site.type([each for each in _typed("manifests/chart/README.md") if _starts(each, UNINSTALLS)])
    _assert_taken_away(site)


def test_the_page_on_monitoring_lets_a_prometheus_without_the_operator_in(site: Site) -> None:
    site.plane.kubectl("apply", "-f", OVERLAYS / "production" / "namespace.yaml")
    commands = typed_in("docs/monitoring.md")
    try:
        site.type(commands)
    finally:
        site.plane.kubectl("delete", "clusterrolebinding", "bayplan-prometheus", "--ignore-not-found")
        site.plane.kubectl("delete", "--namespace", NAMESPACE, "-f", COMPONENT / "rbac.yaml", "--ignore-not-found")
    assert [each.output for each in commands if " can-i " in each.text] == [("yes",), ("yes",)]


def test_each_reason_not_to_type_a_command_is_needed_and_each_word_is_looked_for() -> None:
    shown = [each for name in ("docs/install.md", "docs/upgrade.md") for each in typed_in(name)]
    assert [start for start in (*NOT_TYPED, *PRINTED) if not any(_starts(each, [start]) for each in shown)] == []
