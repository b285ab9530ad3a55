"""`bayplan run`: the scheduler against a cluster."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from bayplan.cli import nothing_collected
from bayplan.cli.allocator import return_large_blocks
from bayplan.cli.feature_gates import FeatureGatesOption
from bayplan.cli.leader_election import (
    LeaderElectionFlags,
    LeaderElectOption,
    LeaseDurationOption,
    RenewDeadlineOption,
    ResourceLockOption,
    ResourceNameOption,
    ResourceNamespaceOption,
    RetryPeriodOption,
)
from bayplan.logs.formats import LoggingFormat
from bayplan.logs.setup import set_up_logging


def run(  # noqa: PLR0917  typer turns each parameter into a flag
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", help="KubeSchedulerConfiguration or legacy Policy; without it one profile, MostAllocated."
        ),
    ] = None,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig",
            help="How to reach the cluster; otherwise $KUBECONFIG, the pod's own account, ~/.kube/config.",
        ),
    ] = None,
    context: Annotated[str | None, typer.Option("--context", help="The kubeconfig context to use.")] = None,
    scheduler_name: Annotated[
        str | None, typer.Option("--scheduler-name", help="Rename the only profile: pods ask for it by this name.")
    ] = None,
    feature_gates: FeatureGatesOption = None,
    bind_address: Annotated[
        str | None,
        typer.Option(
            "--bind-address",
            help="Address that serves /metrics, /livez and /readyz; by default 0.0.0.0 in a pod, 127.0.0.1 elsewhere.",
        ),
    ] = None,
    http_port: Annotated[
        int, typer.Option("--http-port", min=0, max=65535, help="Its port; 0 picks a free one.")
    ] = 10259,
    leader_elect: LeaderElectOption = None,
    leader_elect_lease_duration: LeaseDurationOption = None,
    leader_elect_renew_deadline: RenewDeadlineOption = None,
    leader_elect_retry_period: RetryPeriodOption = None,
    leader_elect_resource_lock: ResourceLockOption = None,
    leader_elect_resource_name: ResourceNameOption = None,
    leader_elect_resource_namespace: ResourceNamespaceOption = None,
    kubelet_rejection_backoff: Annotated[
        int,
        typer.Option(
            "--kubelet-rejection-backoff",
            min=0,
            max=3600,
            help="Seconds without pods for a node whose kubelet had no room for one; 0, as kube-scheduler, is none.",
        ),
    ] = 0,
    logging_format: Annotated[
        LoggingFormat, typer.Option("--logging-format", help="How lines are written to standard error.")
    ] = LoggingFormat.TEXT,
    verbosity: Annotated[
        int,
        typer.Option(
            "--v",
            "-v",
            min=0,
            help="How much is logged: 2 each placement and verdict, 5 each move in the queue, 10 each node's scores.",
        ),
    ] = 0,
) -> None:
    """Schedule the pods that name one of our profiles, until SIGTERM."""
    if config is not None:
        # The file is about to be read, and the scheduler heeds it from then on.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return_large_blocks()
    set_up_logging(logging_format, verbosity)
    with nothing_collected():
        # Imported here so that `--help` does not pay for kopf and the API client.
        from bayplan.cli.serve import ConfigurationFlags, serve  # noqa: PLC0415

    election = LeaderElectionFlags(
        leader_elect=leader_elect,
        lease_duration=leader_elect_lease_duration,
        renew_deadline=leader_elect_renew_deadline,
        retry_period=leader_elect_retry_period,
        resource_lock=leader_elect_resource_lock,
        resource_name=leader_elect_resource_name,
        resource_namespace=leader_elect_resource_namespace,
    )
    flags = ConfigurationFlags(
        file=config, scheduler_name=scheduler_name, feature_gates=feature_gates, leader_election=election
    )
    address = bind_address or default_bind_address(os.environ)
    backoff = float(kubelet_rejection_backoff)
    serve(flags, backoff, kubeconfig=kubeconfig, context=context, address=address, port=http_port)


def default_bind_address(environment: Mapping[str, str]) -> str:
    """Return the address to listen at when none is given.

    In a pod, probes and scrapes come from outside it. Elsewhere nobody asked for a port that the network can reach.
    """
    return "0.0.0.0" if environment.get("KUBERNETES_SERVICE_HOST") else "127.0.0.1"  # noqa: S104
