"""`bayplan run`: the scheduler against a cluster."""

import logging
import logging.config
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from bayplan.cli import BAD_INPUT, nothing_collected
from bayplan.cli.feature_gates import FeatureGatesOption
from bayplan.cli.flag_groups import with_flag_groups
from bayplan.cli.leader_election import LeaderElectionFlags
from bayplan.cli.serving import AuthenticationFlags, AuthorizationFlags, ServingFlags

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
class LogFlags:
    """What is logged."""

    verbosity: Annotated[int, typer.Option("--verbosity", "-v", min=0, max=2, help="0 warnings, 1 info, 2 debug.")] = 1


@with_flag_groups
def run(
    *,
    flags: RunFlags,
    serving: ServingFlags,
    authentication: AuthenticationFlags,
    authorization: AuthorizationFlags,
    election: LeaderElectionFlags,
    logs: LogFlags,
) -> None:
    """Schedule the pods that name one of our profiles, until SIGTERM."""
    if flags.config is not None:
        # The file is about to be read, and the scheduler heeds it from then on.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    logging.config.dictConfig(_logging(_LEVELS[logs.verbosity]))
    with nothing_collected():
        # Imported here so that `--help` does not pay for kopf and the API client.
        from bayplan.cli.serve import ConfigurationFlags, serve  # noqa: PLC0415
        from bayplan.cli.serving_options import serving_options  # noqa: PLC0415
    from bayplan.config.errors import ConfigurationError  # noqa: PLC0415

    configuration = ConfigurationFlags(
        file=flags.config,
        scheduler_name=flags.scheduler_name,
        feature_gates=flags.feature_gates,
        leader_election=election,
    )
    try:
        options = serving_options(serving, authentication, authorization)
    except ConfigurationError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(BAD_INPUT) from None
    backoff = float(flags.kubelet_rejection_backoff)
    serve(configuration, options, backoff, kubeconfig=flags.kubeconfig, context=flags.context)


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
