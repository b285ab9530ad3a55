"""`bayplan run`: the scheduler against a cluster."""

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, ClassVar

import click

from bayplan.cli import nothing_collected
from bayplan.cli.allocator import return_large_blocks
from bayplan.cli.cluster_flags import CONTEXT, FILE_NAME, KUBECONFIG, MASTER
from bayplan.cli.deprecated_flags import DeprecatedFlags
from bayplan.cli.feature_gates import FEATURE_GATES
from bayplan.cli.flag_groups import Flag, command_of_groups, flag_values
from bayplan.cli.leader_election import LeaderElectionFlags
from bayplan.cli.serving import AuthenticationFlags, AuthorizationFlags, ServingFlags
from bayplan.config.errors import ConfigurationError, invalid
from bayplan.config.fields import parse_duration
from bayplan.config.known_feature_gates import KUBERNETES
from bayplan.logs.formats import LoggingFormat
from bayplan.logs.setup import set_up_logging

_MAJOR, _MINOR = KUBERNETES.split(".")
_PREVIOUS = f"{_MAJOR}.{int(_MINOR) - 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFlags:
    """What is scheduled, by what configuration, and where the cluster is."""

    config: Annotated[
        Path | None,
        Flag(
            "--config",
            type=FILE_NAME,
            metavar="FILE",
            help="KubeSchedulerConfiguration or legacy Policy; without it one profile, MostAllocated.",
        ),
    ] = None
    kubeconfig: Annotated[Path | None, KUBECONFIG] = None
    context: Annotated[str | None, CONTEXT] = None
    master: Annotated[str | None, MASTER] = None
    write_config_to: Annotated[
        Path | None,
        Flag(
            "--write-config-to",
            type=FILE_NAME,
            metavar="FILE",
            help="Write the effective configuration to FILE, and end.",
        ),
    ] = None
    scheduler_name: Annotated[
        str | None,
        Flag("--scheduler-name", metavar="NAME", help="Rename the only profile: pods ask for it by this name."),
    ] = None
    feature_gates: Annotated[Sequence[str], FEATURE_GATES] = ()
    kubelet_rejection_backoff: Annotated[
        int,
        Flag(
            "--kubelet-rejection-backoff",
            type=click.IntRange(0, 3600),
            metavar="SECONDS",
            help="How long a node whose kubelet had no room for a pod gets none; 0, as kube-scheduler, not at all.",
        ),
    ] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedFlags:
    """Flags of kube-scheduler whose meaning bayplan fulfils whatever they say."""

    section: ClassVar = "Options without effect"

    show_hidden_metrics: Annotated[
        str | None,
        Flag("--show-hidden-metrics-for-version", metavar="VERSION", help="Accepted: no metric is hidden."),
    ] = None
    log_flush_frequency: Annotated[
        str | None,
        Flag("--log-flush-frequency", metavar="DURATION", help="Accepted: no line waits for a flush."),
    ] = None

    def check(self) -> None:
        """Refuse values that kube-scheduler does not take either; raises ConfigurationError."""
        errors = []
        version, frequency = self.show_hidden_metrics, self.log_flush_frequency
        if version and version != _PREVIOUS:
            said = f"must be {_PREVIOUS}, the version before the one whose metrics these are"
            errors.append(invalid("--show-hidden-metrics-for-version", version, said))
        if frequency is not None and (parse_duration(frequency) or timedelta()) <= timedelta():
            errors.append(
                invalid("--log-flush-frequency", frequency, 'must be a duration greater than 0, such as "5s"')
            )
        if errors:
            raise ConfigurationError(errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFlags:
    """What is logged."""

    section: ClassVar = "Logging options"

    logging_format: Annotated[
        str,
        Flag(
            "--logging-format",
            type=click.Choice([each.value for each in LoggingFormat]),
            metavar="text|json",
            help="How lines are written to standard error.",
        ),
    ] = LoggingFormat.TEXT.value
    verbosity: Annotated[
        int,
        Flag(
            "--v",
            "-v",
            type=click.IntRange(0),
            metavar="INT",
            help="How much is logged: 2 each placement and verdict, 5 each move in the queue, 10 each node's scores.",
        ),
    ] = 0


@command_of_groups(
    "run",
    examples=(
        "bayplan run --config scheduler.yaml",
        "bayplan run --kubeconfig ~/.kube/config --context test --scheduler-name packer -v 2",
        "bayplan run --config scheduler.yaml --write-config-to effective.yaml",
    ),
)
def run(
    *,
    flags: RunFlags,
    serving: ServingFlags,
    authentication: AuthenticationFlags,
    authorization: AuthorizationFlags,
    election: LeaderElectionFlags,
    deprecated: DeprecatedFlags,
    accepted: AcceptedFlags,
    logs: LogFlags,
) -> None:
    """Schedule the pods that name one of our profiles, until SIGTERM."""
    if flags.config is not None:
        # The file is about to be read, and the scheduler heeds it from then on.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return_large_blocks()
    set_up_logging(LoggingFormat(logs.logging_format), logs.verbosity)
    with nothing_collected():
        # Imported here so that `--help` does not pay for kopf and the API client.
        from bayplan.cli.serve import Cluster, ConfigurationFlags, serve, write_configuration  # noqa: PLC0415
        from bayplan.cli.serving_options import serving_options  # noqa: PLC0415

    configuration = ConfigurationFlags(
        file=flags.config,
        scheduler_name=flags.scheduler_name,
        feature_gates=flags.feature_gates,
        leader_election=election,
        deprecated=deprecated,
    )
    given = flag_values(flags, serving, authentication, authorization, election, deprecated, accepted, logs)
    accepted.check()
    options = serving_options(serving, authentication, authorization, flags=given)
    unschedulable_seconds = deprecated.unschedulable_seconds
    if flags.write_config_to is not None:
        write_configuration(configuration, flags.write_config_to)
        return
    serve(
        configuration,
        Cluster(flags.kubeconfig, flags.context, flags.master),
        options,
        rejection_backoff_seconds=float(flags.kubelet_rejection_backoff),
        unschedulable_seconds=unschedulable_seconds,
    )
