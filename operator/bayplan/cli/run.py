"""`bayplan run`: the scheduler against a cluster."""

import logging
import logging.config
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from bayplan.cli import nothing_collected
from bayplan.cli.feature_gates import FeatureGatesOption
from bayplan.cli.flag_groups import with_flag_groups
from bayplan.cli.leader_election import LeaderElectionFlags

_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFlags:
    """What is scheduled, by what configuration, and where the cluster is."""

    config: Annotated[
        Path | None,
        typer.Option(
            "--config", help="KubeSchedulerConfiguration or legacy Policy; without it one profile, MostAllocated."
        ),
    ] = None
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig",
            help="How to reach the cluster; otherwise $KUBECONFIG, the pod's own account, ~/.kube/config.",
        ),
    ] = None
    context: Annotated[str | None, typer.Option("--context", help="The kubeconfig context to use.")] = None
    scheduler_name: Annotated[
        str | None, typer.Option("--scheduler-name", help="Rename the only profile: pods ask for it by this name.")
    ] = None
    feature_gates: FeatureGatesOption = None
    kubelet_rejection_backoff: Annotated[
        int,
        typer.Option(
            "--kubelet-rejection-backoff",
            min=0,
            max=3600,
            help="Seconds without pods for a node whose kubelet had no room for one; 0, as kube-scheduler, is none.",
        ),
    ] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFlags:
    """Where metrics and health are served."""

    bind_address: Annotated[
        str | None,
        typer.Option(
            "--bind-address",
            help="Address that serves /metrics, /livez and /readyz; by default 0.0.0.0 in a pod, 127.0.0.1 elsewhere.",
        ),
    ] = None
    http_port: Annotated[int, typer.Option("--http-port", min=0, max=65535, help="Its port; 0 picks a free one.")] = (
        10259
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFlags:
    """What is logged."""

    verbosity: Annotated[int, typer.Option("--verbosity", "-v", min=0, max=2, help="0 warnings, 1 info, 2 debug.")] = 1


@with_flag_groups
def run(flags: RunFlags, serving: ServingFlags, election: LeaderElectionFlags, logs: LogFlags) -> None:
    """Schedule the pods that name one of our profiles, until SIGTERM."""
    if flags.config is not None:
        # The file is about to be read, and the scheduler heeds it from then on.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    logging.config.dictConfig(_logging(_LEVELS[logs.verbosity]))
    with nothing_collected():
        # Imported here so that `--help` does not pay for kopf and the API client.
        from bayplan.cli.serve import ConfigurationFlags, serve  # noqa: PLC0415

    configuration = ConfigurationFlags(
        file=flags.config,
        scheduler_name=flags.scheduler_name,
        feature_gates=flags.feature_gates,
        leader_election=election,
    )
    address = serving.bind_address or default_bind_address(os.environ)
    backoff = float(flags.kubelet_rejection_backoff)
    serve(
        configuration,
        backoff,
        kubeconfig=flags.kubeconfig,
        context=flags.context,
        address=address,
        port=serving.http_port,
    )


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
