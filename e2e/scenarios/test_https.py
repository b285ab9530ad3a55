"""The secure port before a real API server: who is let in, as whom, and while the API server is away."""

import base64
import shutil
import ssl
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from e2e.conftest import RunBayplan
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient
from e2e.controlplane.credentials import CertificateAuthority
from e2e.controlplane.health import get_local, trusting_anybody
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import free_ports
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.outcomes import assert_alive_without_a_traceback, configuration

pytestmark = pytest.mark.controlplane

ROLE = "test-metrics-reader"
READER = "test-reader"
ENDPOINTS = (
    "/metrics",
    "/metrics/slis",
    "/metrics/resources",
    "/configz",
    "/flagz",
    "/statusz",
    "/debug/cache",
    "/debug/profile?seconds=1",
)


class Secure:
    """A scheduler with a secure port, and its certificate on disk."""

    def __init__(self, process: BayplanProcess, port: int, folder: Path) -> None:
        self.process = process
        self.port = port
        self._folder = folder

    def status(self, path: str, *, token: str | None = None, tls: bool | ssl.SSLContext = True) -> int:
        return get_local(self.port, path, tls=tls, token=token)[0]

    def rotate(self) -> ssl.SSLContext:
        """Puts a certificate of a new authority in place, and returns what trusts that one alone."""
        return put_certificate(self._folder)


RunSecure = Callable[..., Secure]


def put_certificate(folder: Path) -> ssl.SSLContext:
    """Writes tls.crt and tls.key, and returns what trusts their authority alone."""
    made = folder / f"authority-{len(list(folder.iterdir()))}"
    made.mkdir()
    authority = CertificateAuthority(made)
    certificate, key = authority.serving()
    shutil.copy(key, folder / "tls.key")
    shutil.copy(certificate, folder / "tls.crt")
    return ssl.create_default_context(cafile=str(authority.certificate_file))


@pytest.fixture
def run_secure(run_bayplan: RunBayplan, tmp_path: Path) -> RunSecure:
    """Starts a scheduler with a secure port."""

    def run(arguments: Sequence[str] = ()) -> Secure:
        (port,) = free_ports(1)
        folder = tmp_path / f"tls-{port}"
        folder.mkdir()
        put_certificate(folder)
        flags = [
            f"--secure-port={port}",
            f"--tls-cert-file={folder}/tls.crt",
            f"--tls-private-key-file={folder}/tls.key",
        ]
        return Secure(run_bayplan(configuration(), arguments=[*flags, *arguments]), port, folder)

    return run


@pytest.fixture
def accounts(control_plane: ControlPlane, client: ApiClient, namespace: str) -> Iterator[dict[str, str]]:
    """Tokens of two service accounts, of which `scraper` may see the metrics, as the user READER may."""
    rules = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    rbac = {"apiGroup": "rbac.authorization.k8s.io"}
    subjects = [
        {"kind": "ServiceAccount", "name": "scraper", "namespace": namespace},
        {"kind": "User", "name": READER, **rbac},
    ]
    reference = {"kind": "ClusterRole", "name": ROLE, **rbac}
    roles, bindings = "clusterroles", "clusterrolebindings"
    base = "/apis/rbac.authorization.k8s.io/v1"
    client.request("POST", f"{base}/{roles}", {"metadata": {"name": ROLE}, "rules": rules})
    client.request(
        "POST", f"{base}/{bindings}", {"metadata": {"name": ROLE}, "roleRef": reference, "subjects": subjects}
    )
    for name in ("scraper", "stranger"):
        client.create("serviceaccounts", {"metadata": {"name": name, "namespace": namespace}})
    yield {
        name: control_plane.kubectl("-n", namespace, "create", "token", name).strip()
        for name in ("scraper", "stranger")
    }
    for kind in (bindings, roles):
        client.request("DELETE", f"{base}/{kind}/{ROLE}")


def test_credentials_and_rights_decide_who_sees_what(
    control_plane: ControlPlane, accounts: dict[str, str], run_secure: RunSecure
) -> None:
    secure = run_secure()
    for path in ("/livez", "/readyz", "/healthz"):
        assert secure.status(path) == 200
    assert secure.status("/metrics") == 401
    assert secure.status("/metrics", token="made-up") == 401
    assert secure.status("/metrics", token=accounts["stranger"]) == 403
    assert secure.status("/metrics", token=accounts["scraper"]) == 200
    assert secure.status("/debug/cache", token=accounts["scraper"]) == 403
    for user, status in ((READER, 200), ("test-nobody", 403)):
        control_plane.kubeconfig_for(user)
        context = trusting_anybody(control_plane.tls(user))
        wait_until(
            lambda context=context, status=status: secure.status("/metrics", tls=context) == status,  # type: ignore[misc]
            f"{status} for the certificate of {user}",
            detail=secure.process.log_tail,
        )
    control_plane.kubeconfig_for("test-master", groups=("system:masters",))
    master = trusting_anybody(control_plane.tls("test-master"))
    for path in ENDPOINTS:
        assert secure.status(path, tls=master) == 200
        assert secure.status(path) == 401
    assert_alive_without_a_traceback(secure.process)
    for token in accounts.values():
        assert token not in secure.process.log()


def test_a_token_that_is_not_the_api_servers_own_lets_nobody_in(
    control_plane: ControlPlane, client: ApiClient, namespace: str, accounts: dict[str, str], run_secure: RunSecure
) -> None:
    secure = run_secure(["--authentication-token-webhook-cache-ttl=0s"])
    good = accounts["scraper"]
    head, claims, signature = good.split(".")
    elsewhere = control_plane.kubectl("-n", namespace, "create", "token", "scraper", "--audience=vault").strip()
    unsigned = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    for token in (elsewhere, f"{head}.{claims}.{signature[::-1]}", f"{head}.{claims}.", f"{unsigned}.{claims}."):
        assert secure.status("/metrics", token=token) == 401
    assert secure.status("/metrics", token=good) == 200
    client.delete("serviceaccounts", "scraper", namespace=namespace)
    wait_until(lambda: secure.status("/metrics", token=good) == 401, "the token of an account that is gone to end")
    assert_alive_without_a_traceback(secure.process)


def test_a_standby_knows_its_clients_as_well_as_the_leader(accounts: dict[str, str], run_secure: RunSecure) -> None:
    for secure in [run_secure(["--leader-elect"]) for _ in range(2)]:
        statuses = [
            secure.status("/metrics", token=token) for token in (accounts["scraper"], accounts["stranger"], None)
        ]
        assert statuses == [200, 403, 401]


def test_a_rotated_certificate_is_shown_to_new_clients(run_secure: RunSecure) -> None:
    secure = run_secure()
    trusting = secure.rotate()
    wait_until(partial(is_trusted, secure, trusting), "the new certificate", detail=secure.process.log_tail)
    assert_alive_without_a_traceback(secure.process)


def is_trusted(secure: Secure, context: ssl.SSLContext) -> bool:
    try:
        return secure.status("/livez", tls=context) == 200
    except ssl.SSLError:
        return False


def test_without_the_api_server_nobody_is_let_in_and_probes_are_answered(
    control_plane: ControlPlane, accounts: dict[str, str], run_secure: RunSecure
) -> None:
    secure = run_secure(["--authentication-token-webhook-cache-ttl=0s", "--authentication-skip-lookup"])
    assert secure.status("/metrics", token=accounts["scraper"]) == 200
    control_plane.stop_apiserver()
    try:
        assert secure.status("/metrics", token=accounts["scraper"]) == 401
        assert secure.status("/livez") == 200
    finally:
        control_plane.start_apiserver()
    wait_until(
        lambda: secure.status("/metrics", token=accounts["scraper"]) == 200,
        "the token to be known again",
        detail=secure.process.log_tail,
    )
    assert_alive_without_a_traceback(secure.process)


def test_where_the_lookup_may_not_fail_it_does_not_start_without_the_api_server(
    control_plane: ControlPlane, namespace: str, run_bayplan: RunBayplan
) -> None:
    (port,) = free_ports(1)
    control_plane.stop_apiserver()
    try:
        process = run_bayplan(
            configuration(),
            arguments=[f"--secure-port={port}", "--authentication-tolerate-lookup-failure=false"],
            wait_ready=False,
        )
        assert process.wait(60) == 2
    finally:
        control_plane.start_apiserver()
    assert "extension-apiserver-authentication" in process.log()
