"""Starts and stops one control plane on free loopback ports."""

import json
import os
import shutil
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from e2e.controlplane import commands, kube_scheduler_process
from e2e.controlplane.audit import POLICY_FILE, AuditEvent, AuditTail, read_audit_log
from e2e.controlplane.build import binary
from e2e.controlplane.client import ApiClient
from e2e.controlplane.credentials import CertificateAuthority, write_kubeconfig, write_signing_key
from e2e.controlplane.health import is_healthy
from e2e.controlplane.kube_scheduler_process import KubeSchedulerProcess
from e2e.controlplane.process import Process, free_ports, stop_all
from e2e.controlplane.service_account import ServiceAccountVolume, request_token

START_SECONDS = 90.0
STOP_SECONDS = 2.0  # kube-apiserver waits up to a minute for watches to end; nothing here is worth that
_ADMIN_GROUP = "system:masters"


@dataclass(frozen=True, slots=True)
class ControlPlaneOptions:
    """What runs besides etcd and kube-apiserver, and how.

    bench: no limits on requests in flight. audit: a log of what schedulers write, see `audit_events`.
    garbage_percent: by how much kube-apiserver's memory grows before it collects garbage; more is less CPU (GOGC).
    unserved: versions of API groups that are off, such as storage.k8s.io/v1. served: versions that are on besides.
    feature_gates: those of kube-apiserver that are on besides. kwok_stages: what kwok plays.
    parent: the folder in which it makes its own; without one that for temporary files.
    Without kube-controller-manager nobody makes default service accounts or takes the not-ready taint off
    new nodes, so the two admission plugins that count on it are off as well.
    """

    kube_controller_manager: bool = False
    kwok: bool = False
    bench: bool = False
    audit: bool = False
    garbage_percent: int = 100
    disable_admission: tuple[str, ...] = ()
    unserved: tuple[str, ...] = ()
    served: tuple[str, ...] = ()
    feature_gates: tuple[str, ...] = ()
    kwok_stages: Path = commands.KWOK_STAGES
    parent: Path | None = None

    def disabled_admission(self) -> tuple[str, ...]:
        """Returns all admission plugins that are off."""
        alone = () if self.kube_controller_manager else ("ServiceAccount", "TaintNodesByCondition")
        return tuple(dict.fromkeys((*alone, *self.disable_admission)))


class ControlPlane:
    """A running control plane with RBAC on; everything it keeps is in one temporary folder."""

    def __init__(self, options: ControlPlaneOptions) -> None:
        self.options = options
        self.directory = Path(tempfile.mkdtemp(prefix="bayplan-controlplane-", dir=options.parent))
        self.ports = commands.Ports(*free_ports(5))
        self.url = f"https://127.0.0.1:{self.ports.apiserver}"
        self._authority = CertificateAuthority(self._folder("pki"))
        self.ca_file = self._authority.certificate_file
        self._signing_key = self.directory / "pki" / "service-account.key"
        self._public_key = self.directory / "pki" / "service-account.pub"
        write_signing_key(self._signing_key, self._public_key)
        self._serving = self._authority.serving()
        self.admin_kubeconfig = self._admin_named("test-admin")
        self.client = ApiClient(self.url, self.tls("test-admin"))
        self._processes: dict[str, Process] = {}
        self.start_seconds = 0.0

    @classmethod
    def start(cls, options: ControlPlaneOptions | None = None) -> Self:
        """Starts everything and returns once all parts are ready.

        Raises:
            BuildError, ToolchainError: the binaries are not there and cannot be built.
            RuntimeError, TimeoutError: a part did not become ready; the message has the end of its log.
        """
        plane = cls(options or ControlPlaneOptions())
        try:
            plane._start()
        except BaseException:
            plane.stop()
            raise
        return plane

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stops every process it started and removes its folder; safe to call twice."""
        self.client.close()
        stop_all(list(reversed(self._processes.values())), STOP_SECONDS)
        self._processes.clear()
        shutil.rmtree(self.directory, ignore_errors=True)

    def process(self, name: str) -> Process:
        """Returns a running part by the name of its binary."""
        return self._processes[name]

    def stop_apiserver(self) -> None:
        """Kills kube-apiserver; etcd keeps the objects."""
        process = self._processes.pop("kube-apiserver")
        process.kill()
        process.wait()
        self.client.close()

    def start_apiserver(self) -> None:
        """Starts kube-apiserver on the same port, with the same keys, and waits until it is ready."""
        files = commands.ApiServerFiles(
            certificate=self._serving[0],
            key=self._serving[1],
            client_ca=self.ca_file,
            service_account_key=self._signing_key,
            service_account_public_key=self._public_key,
            certificate_directory=self._folder("kube-apiserver"),
        )
        audit = (POLICY_FILE, self._audit_log) if self.options.audit else None
        command = commands.kube_apiserver(
            binary("kube-apiserver"),
            files,
            self.ports,
            disable_admission=self.options.disabled_admission(),
            unserved=self.options.unserved,
            served=self.options.served,
            feature_gates=self.options.feature_gates,
            unlimited=self.options.bench,
            audit=audit,
        )
        environment = {**os.environ, "GOGC": str(self.options.garbage_percent)}
        self._launch("kube-apiserver", command, self._apiserver_is_ready, environment)

    def restart_etcd(self) -> None:
        """Kills etcd and starts it again on its data; kube-apiserver connects anew."""
        process = self._processes.pop("etcd")
        process.kill()
        process.wait()
        self._start_etcd()

    def compact_etcd(self) -> None:
        """Has etcd forget every version but the present one of each object, as it does every five minutes."""
        present = self._etcd("/v3/maintenance/status", {})["header"]["revision"]
        self._etcd("/v3/kv/compaction", {"revision": present, "physical": True})

    def _etcd(self, path: str, body: dict[str, object]) -> dict[str, Any]:
        connection = HTTPConnection("127.0.0.1", self.ports.etcd_client, timeout=30)
        try:
            connection.request("POST", path, json.dumps(body))
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
            return answer
        finally:
            connection.close()

    def restart_apiserver(self) -> None:
        """Kills kube-apiserver and starts it again; watches break, objects stay."""
        self.stop_apiserver()
        self.start_apiserver()

    def start_kube_scheduler(self, configuration: dict[str, Any]) -> KubeSchedulerProcess:
        """Starts kube-scheduler with its own bootstrap role and waits until it is healthy.

        Stop it through the returned process.
        """
        kubeconfig = self.kubeconfig_for(kube_scheduler_process.USER)
        process = KubeSchedulerProcess(self._folder("kube-scheduler"), configuration, kubeconfig)
        self._processes["kube-scheduler"] = process
        process.wait_ready()
        return process

    def kubeconfig_for(self, user: str, *, groups: Sequence[str] = (), token: str | None = None) -> Path:
        """Writes a kubeconfig and returns it: with `token`, else with a client certificate for `user`.

        RBAC decides what the user may do; a new user may do nothing.
        """
        entry: dict[str, object] = {"token": token}
        if token is None:
            certificate, key = self._authority.client(user, groups)
            entry = {"client-certificate": str(certificate), "client-key": str(key)}
        path = self._folder("kubeconfig") / user.replace(":", "-").replace("/", "-")
        return write_kubeconfig(path, url=self.url, ca_file=self.ca_file, user=entry)

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """Writes a kubeconfig with a real token of an existing service account and returns it."""
        token = request_token(self.client, namespace, name)
        return self.kubeconfig_for(f"system:serviceaccount:{namespace}:{name}", token=token)

    def in_cluster_dir(self, namespace: str, name: str, **spec: object) -> ServiceAccountVolume:
        """Returns a new folder like the one a pod of this service account would see; `spec` is as a TokenRequest's."""
        directory = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self._folder("volumes")))
        return ServiceAccountVolume(
            directory,
            self.client,
            namespace=namespace,
            name=name,
            ca_file=self.ca_file,
            port=self.ports.apiserver,
            spec=spec,
        )

    def kubectl(self, *arguments: str | Path, kubeconfig: Path | None = None, check: bool = True) -> str:
        """Runs kubectl, as the admin unless told otherwise, and returns its standard output.

        Raises:
            RuntimeError: it failed; the message has both streams. With `check=False` it never does.
        """
        command = [
            binary("kubectl"),
            f"--kubeconfig={kubeconfig or self.admin_kubeconfig}",
            f"--cache-dir={self._folder('kubectl-cache')}",
            *arguments,
        ]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.directory)},
        )
        if check and done.returncode != 0:
            shown = " ".join(map(str, arguments))
            raise RuntimeError(f"kubectl {shown} exited with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def audit_events(self) -> list[AuditEvent]:
        """Returns what the audit log holds so far; needs the option `audit`."""
        return read_audit_log(self._checked_audit_log())

    def audit_tail(self) -> AuditTail:
        """Returns what follows the audit log from now on; needs the option `audit`."""
        return AuditTail(self._checked_audit_log())

    def _checked_audit_log(self) -> Path:
        if not self.options.audit:
            raise ValueError("this control plane was started without audit=True")
        return self._audit_log

    @property
    def _audit_log(self) -> Path:
        return self.directory / "audit.log"

    def _start(self) -> None:
        started = time.monotonic()
        self._start_etcd()
        self.start_apiserver()
        if self.options.kube_controller_manager:
            self._start_kube_controller_manager()
        if self.options.kwok:
            command = commands.kwok(
                binary("kwok"), self._admin_named("kwok"), self.ports, stages=self.options.kwok_stages
            )
            self._launch("kwok", command, lambda: is_healthy(self.ports.kwok, tls=False))
        self.start_seconds = time.monotonic() - started

    def _start_etcd(self) -> None:
        self._launch(
            "etcd",
            commands.etcd(binary("etcd"), self.directory / "etcd", self.ports),
            lambda: is_healthy(self.ports.etcd_client, tls=False, path="/health"),
        )

    def _start_kube_controller_manager(self) -> None:
        command = commands.kube_controller_manager(
            binary("kube-controller-manager"),
            self._admin_named("kube-controller-manager"),
            self._folder("kube-controller-manager"),
            self.ports,
            service_account_key=self._signing_key,
            ca_file=self.ca_file,
        )
        port = self.ports.kube_controller_manager
        self._launch("kube-controller-manager", command, lambda: is_healthy(port, tls=True))

    def _launch(
        self,
        name: str,
        command: Sequence[str | Path],
        is_ready: Callable[[], bool],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        log_path = self._folder("logs") / f"{name}.log"
        process = Process(name, command, log_path=log_path, environment=environment, directory=self.directory)
        self._processes[name] = process
        process.wait_ready(is_ready, timeout_seconds=START_SECONDS)

    def _apiserver_is_ready(self) -> bool:
        try:
            return self.client.exchange("GET", "/readyz")[0] == 200
        except (OSError, HTTPException):
            return False

    def _admin_named(self, user: str) -> Path:
        return self.kubeconfig_for(user, groups=(_ADMIN_GROUP,))

    def _folder(self, name: str) -> Path:
        folder = self.directory / name
        folder.mkdir(exist_ok=True)
        return folder

    def tls(self, user: str | None) -> ssl.SSLContext:
        """Returns TLS settings that trust this API server, with the certificate of a `kubeconfig_for` user."""
        context = ssl.create_default_context(cafile=str(self.ca_file))
        if user is not None:
            pki = self.directory / "pki"
            context.load_cert_chain(pki / f"client-{user}.crt", pki / f"client-{user}.key")
        return context
