"""The command lines of the control plane's parts, and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

KWOK_STAGES = Path(__file__).with_name("kwok.yaml")
SERVICE_ACCOUNT_ISSUER = "https://kubernetes.default.svc.cluster.local"


@dataclass(frozen=True, slots=True)
class Ports:
    """The loopback ports of one control plane."""

    etcd_client: int
    etcd_peer: int
    apiserver: int
    kube_controller_manager: int
    kwok: int


@dataclass(frozen=True, slots=True)
class ApiServerFiles:
    """The files kube-apiserver reads."""

    certificate: Path
    key: Path
    client_ca: Path
    service_account_key: Path
    service_account_public_key: Path
    certificate_directory: Path


def etcd(binary: Path, data: Path, ports: Ports) -> list[str | Path]:
    """Returns etcd's command; nothing is synced to disk, so a crash of the machine loses it all."""
    client, peer = f"http://127.0.0.1:{ports.etcd_client}", f"http://127.0.0.1:{ports.etcd_peer}"
    return [
        binary,
        f"--data-dir={data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--quota-backend-bytes=8589934592",
        "--log-level=warn",
    ]


def kube_apiserver(
    binary: Path,
    files: ApiServerFiles,
    ports: Ports,
    *,
    disable_admission: Sequence[str] = (),
    unserved: Sequence[str] = (),
    served: Sequence[str] = (),
    feature_gates: Sequence[str] = (),
    unlimited: bool = False,
    audit: tuple[Path, Path] | None = None,
) -> list[str | Path]:
    """Returns kube-apiserver's command; `audit` is the policy and the log file.

    `unlimited` lifts the limits on requests in flight, so that a benchmark measures the scheduler.
    """
    command: list[str | Path] = [
        binary,
        f"--etcd-servers=http://127.0.0.1:{ports.etcd_client}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        f"--secure-port={ports.apiserver}",
        f"--cert-dir={files.certificate_directory}",
        f"--tls-cert-file={files.certificate}",
        f"--tls-private-key-file={files.key}",
        f"--client-ca-file={files.client_ca}",
        "--allow-privileged=true",  # as kubeadm has it: add-ons need it
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.0.0.0/16",
        "--delete-collection-workers=16",
        f"--service-account-issuer={SERVICE_ACCOUNT_ISSUER}",
        f"--service-account-signing-key-file={files.service_account_key}",
        f"--service-account-key-file={files.service_account_public_key}",
    ]
    if disable_admission:
        command.append(f"--disable-admission-plugins={','.join(disable_admission)}")
    versions = [*(f"{each}=false" for each in unserved), *(f"{each}=true" for each in served)]
    if versions:
        command.append(f"--runtime-config={','.join(versions)}")
    if feature_gates:
        command.append(f"--feature-gates={','.join(f'{each}=true' for each in feature_gates)}")
    if unlimited:
        command += [
            "--max-requests-inflight=3000",
            "--max-mutating-requests-inflight=2000",
            "--enable-priority-and-fairness=false",
        ]
    if audit is not None:
        policy, log = audit
        command += [f"--audit-policy-file={policy}", f"--audit-log-path={log}", "--audit-log-mode=blocking"]
        # In MB: a log that begins anew while it is followed would lose calls.
        command.append("--audit-log-maxsize=10000")
    return command


def kube_controller_manager(
    binary: Path, kubeconfig: Path, directory: Path, ports: Ports, *, service_account_key: Path, ca_file: Path
) -> list[str | Path]:
    """Returns kube-controller-manager's command: every default controller, one identity."""
    return [
        binary,
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.kube_controller_manager}",
        f"--cert-dir={directory}",
        f"--service-account-private-key-file={service_account_key}",
        f"--root-ca-file={ca_file}",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    ]


def kwok(binary: Path, kubeconfig: Path, ports: Ports, *, stages: Path = KWOK_STAGES) -> list[str | Path]:
    """Returns kwok's command: it is the kubelet of every node and renews their leases."""
    return [
        binary,
        f"--kubeconfig={kubeconfig}",
        f"--config={stages}",
        "--manage-all-nodes",
        "--node-ip=127.0.0.1",
        "--cidr=10.244.0.0/16",
        "--node-lease-duration-seconds=40",
        f"--server-address=127.0.0.1:{ports.kwok}",
    ]


def kube_scheduler(
    binary: Path, kubeconfig: Path, config: Path, directory: Path, *, port: int, verbosity: int
) -> list[str | Path]:
    """Returns kube-scheduler's command, for use as an oracle or as the other side of a benchmark."""
    return [
        binary,
        f"--config={config}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={directory}",
        f"--v={verbosity}",
    ]
