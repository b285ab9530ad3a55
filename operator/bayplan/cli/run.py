"""`bayplan run`: the scheduler against a cluster."""

import logging
import logging.config
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from bayplan import __version__
from bayplan.cli import BAD_INPUT, nothing_collected
from bayplan.cli.feature_gates import FeatureGatesOption, without_effect
from bayplan.cli.leader_election import (
    LeaderElectionFlags,
    LeaderElectOption,
    LeaseDurationOption,
    RenewDeadlineOption,
    ResourceLockOption,
    ResourceNameOption,
    ResourceNamespaceOption,
    RetryPeriodOption,
    with_flags,
)
from bayplan.config.errors import ConfigurationError, FieldNote, note_lines
from bayplan.config.types import SchedulerConfiguration

logger = logging.getLogger(__name__)

KUBE_SCHEDULERS_LEASE = "kube-scheduler"
"""What a file from `kube-scheduler --write-config-to` names."""
_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


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
    verbosity: Annotated[int, typer.Option("--verbosity", "-v", min=0, max=2, help="0 warnings, 1 info, 2 debug.")] = 1,
) -> None:
    """Schedule the pods that name one of our profiles, until SIGTERM."""
    signal.signal(signal.SIGTERM, _end_before_it_began)
    address = bind_address or default_bind_address(os.environ)
    logging.config.dictConfig(_logging(_LEVELS[verbosity]))
    # Imported here so that the other commands do not pay for kopf and the API client.
    with nothing_collected():
        import uvloop  # noqa: PLC0415

        from bayplan.api.credentials import load_credentials  # noqa: PLC0415
        from bayplan.api.errors import CredentialsError  # noqa: PLC0415
        from bayplan.cli.config import load_checked  # noqa: PLC0415
        from bayplan.config.watched_file import WatchedFile  # noqa: PLC0415
        from bayplan.controller.app import App  # noqa: PLC0415
        from bayplan.controller.reload import ConfigurationSource, own_pod  # noqa: PLC0415

    flags = LeaderElectionFlags(
        leader_elect=leader_elect,
        lease_duration=leader_elect_lease_duration,
        renew_deadline=leader_elect_renew_deadline,
        retry_period=leader_elect_retry_period,
        resource_lock=leader_elect_resource_lock,
        resource_name=leader_elect_resource_name,
        resource_namespace=leader_elect_resource_namespace,
    )

    def load() -> SchedulerConfiguration:
        notes: list[FieldNote] = []
        configuration = load_checked(config, scheduler_name, feature_gates, notes)
        election = with_flags(configuration.leader_election, flags, os.environ)
        configuration = replace(configuration, leader_election=election)
        for line in note_lines(config, notes):
            logger.warning("%s", line)
        _warn(configuration)
        return configuration

    # Before it is read, so that a change meanwhile is seen.
    source = None if config is None else ConfigurationSource(WatchedFile(config), load, own_pod(os.environ))
    try:
        configuration = load()
    except ConfigurationError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(BAD_INPUT) from None

    logger.info("bayplan starts version=%s", __version__)

    async def serve() -> int:
        file = kubeconfig or (
            Path(configuration.client_connection.kubeconfig) if configuration.client_connection.kubeconfig else None
        )
        credentials = load_credentials(file, context)
        backoff = float(kubelet_rejection_backoff)
        app = App(configuration, credentials, address, http_port, source, rejection_backoff_seconds=backoff)
        return await app.run()

    try:
        _end_process(uvloop.run(serve()))
    except CredentialsError as error:
        typer.echo(f"bayplan: {error}", err=True)
        raise typer.Exit(BAD_INPUT) from None
    except OSError as error:
        typer.echo(f"bayplan: {address}:{http_port}: {error.strerror or error}", err=True)
        raise typer.Exit(1) from None


def _end_process(code: int) -> NoReturn:
    """End with `code` and without taking the interpreter apart; nothing else of bayplan does so (ADR 17).

    All parts have ended by now, but threads of libraries go on: the HTTP client's, and kopf's if it hangs. One that
    wants the interpreter while that is taken apart aborts the process, or is waited for.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _end_before_it_began(*_: object) -> NoReturn:
    """Heed SIGTERM until the scheduler does: there is nothing yet to be finished.

    As the first process of a container it would not even get a signal that it does not handle.
    """
    os._exit(0)


def default_bind_address(environment: Mapping[str, str]) -> str:
    """Return the address to listen at when none is given.

    In a pod, probes and scrapes come from outside it. Elsewhere nobody asked for a port that the network can reach.
    """
    return "0.0.0.0" if environment.get("KUBERNETES_SERVICE_HOST") else "127.0.0.1"  # noqa: S104


def _logging(level: int) -> dict[str, Any]:
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"format": "%(asctime)s %(levelname).1s %(name)s %(message)s"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"level": level, "handlers": ["stderr"]},
        # kopf has a line for each event of each pod, and what ends it is told by who starts it again.
        "loggers": {"kopf": {"level": logging.ERROR}},
    }


def _warn(configuration: SchedulerConfiguration) -> None:
    """Say what the configuration asks for that this version does not do."""
    election = configuration.leader_election
    if election.leader_elect and election.resource_name == KUBE_SCHEDULERS_LEASE:
        logger.warning("leaderElection.resourceName is kube-scheduler's lease: one of the two schedules at a time")
    for line in without_effect(configuration):
        logger.warning("%s", line)
