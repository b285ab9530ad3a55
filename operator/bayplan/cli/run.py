"""`bayplan run`: the scheduler against a cluster, and the flags of it but for those for serving."""

import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import click

from bayplan.cli import nothing_collected
from bayplan.cli.flags import FEATURE_GATES, SCHEDULER_NAME, command, flag_values
from bayplan.cli.process import return_large_blocks
from bayplan.config.connections import LeaderElection, elector_errors
from bayplan.config.errors import ConfigurationError, forbidden, invalid
from bayplan.config.feature_gates import KUBERNETES
from bayplan.config.flags import CONTEXT, KUBECONFIG, MASTER, duration, flag
from bayplan.config.types import SchedulerConfiguration
from bayplan.logs.formats import LoggingFormat
from bayplan.logs.line_writer import set_up_logging
from bayplan.server.options import AuthenticationOptions, AuthorizationOptions, ServingOptions

_MAJOR, _MINOR = KUBERNETES.split(".")
_PREVIOUS: Final = f"{_MAJOR}.{int(_MINOR) - 1}"


def _unschedulable_seconds(name: str, text: str) -> float:
    return duration(name, text, least=timedelta(seconds=1), example='of at least a second, as "5m"').total_seconds()


def _previous_version(name: str, text: str) -> str:
    if text and text != _PREVIOUS:
        said = f"must be {_PREVIOUS}, the version before the one whose metrics these are"
        raise ConfigurationError([invalid(name, text, said)])
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFlags:
    """What is scheduled, by what configuration, and where the cluster is."""

    config: Path | None = flag(
        "--config FILE", "KubeSchedulerConfiguration or legacy Policy; without it one profile, MostAllocated."
    )
    kubeconfig: Path | None = KUBECONFIG()
    context: str | None = CONTEXT()
    master: str | None = MASTER()
    write_config_to: Path | None = flag(
        "--write-config-to FILE", "Write the effective configuration to FILE, and end; - is standard output."
    )
    scheduler_name: str | None = SCHEDULER_NAME()
    feature_gates: Sequence[str] = FEATURE_GATES()
    kubelet_rejection_backoff: int = flag(
        "--kubelet-rejection-backoff SECONDS",
        "How long a node whose kubelet had no room for a pod gets none; 0, as kube-scheduler, not at all.",
        default=0,
        type=click.IntRange(0, 3600),
    )
    shadow: bool = flag(
        "--shadow", "Decide beside other schedulers, in memory: measure what it would save, write nothing."
    )
    of: Sequence[str] = flag(
        "--of NAME",
        "With --shadow: the scheduler whose pods these are; default-scheduler by default. Can be given several times.",
        default=(),
    )

    def __post_init__(self) -> None:
        """Refuse what does not go together."""
        if self.of and not self.shadow:
            raise ConfigurationError([forbidden("--of", "it says beside whom --shadow decides: give both")])


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElectionFlags:
    """What wins over `leaderElection` of the file, in fields of its names; None for a flag that was not given."""

    section: ClassVar = "Leader election options"

    leader_elect: bool | None = flag(
        "--leader-elect BOOL", "Contend for a lease, and schedule only while holding it; the default."
    )
    lease_duration: timedelta | None = flag(
        "--leader-elect-lease-duration DURATION",
        "How long others wait after the last renewal they saw before they take over; 15s by default.",
    )
    renew_deadline: timedelta | None = flag(
        "--leader-elect-renew-deadline DURATION",
        "How long after its last renewal the leader goes on; 10s by default, less than the lease's duration.",
    )
    retry_period: timedelta | None = flag(
        "--leader-elect-retry-period DURATION", "Time between renewals; 2s by default."
    )
    resource_lock: str | None = flag("--leader-elect-resource-lock KIND", "Always leases.")
    resource_name: str | None = flag("--leader-elect-resource-name NAME", "The lease's name; bayplan by default.")
    resource_namespace: str | None = flag(
        "--leader-elect-resource-namespace NAME", "The lease's namespace; kube-system by default."
    )
    ignore_other_leases: bool = flag(
        "--ignore-other-leases",
        "Schedule without looking whether another scheduler of the same pods leads.",
    )

    def applied_to(self, settings: LeaderElection, environment: Mapping[str, str]) -> LeaderElection:
        """Return the settings of the file with those of the flags, and whether to contend decided.

        What nobody decided is decided by where it runs: replicas are pods. Elsewhere it stays None, since it depends on
        the Leases that are found.

        Raises:
            ConfigurationError: no elector can work with all together.
        """
        names = {each.name for each in fields(self)} - {"ignore_other_leases"}
        merged = replace(settings, **{name: value for name in names if (value := getattr(self, name)) is not None})
        if merged.leader_elect is None and environment.get("KUBERNETES_SERVICE_HOST"):
            merged = replace(merged, leader_elect=True)
        if errors := elector_errors(merged):
            raise ConfigurationError(errors)
        return merged


@dataclass(frozen=True, slots=True, kw_only=True)
class DeprecatedFlags:
    """What fields of the configuration say today; all but the last count only where there is no `--config`."""

    section: ClassVar = "Deprecated options"

    profiling: bool | None = flag("--profiling BOOL", "Deprecated: enableProfiling, where there is no --config.")
    contention_profiling: bool | None = flag(
        "--contention-profiling BOOL", "Deprecated: enableContentionProfiling, likewise."
    )
    kube_api_qps: float | None = flag("--kube-api-qps FLOAT", "Deprecated: clientConnection.qps, likewise.")
    kube_api_burst: int | None = flag(
        "--kube-api-burst INT", "Deprecated: clientConnection.burst, likewise.", type=click.IntRange(0)
    )
    kube_api_content_type: str | None = flag(
        "--kube-api-content-type TYPE", "Deprecated: has no effect, bayplan speaks JSON."
    )
    unschedulable_seconds: float = flag(
        "--pod-max-in-unschedulable-pods-duration DURATION",
        "Deprecated: when a pod that no event woke is tried again; 5m by default.",
        default=300.0,
        read=_unschedulable_seconds,
    )

    def ignored(self) -> Iterator[str]:
        """Say of each flag that was given and counts only without `--config` that it is ignored."""
        for field in fields(self):
            if field.name != "unschedulable_seconds" and getattr(self, field.name) is not None:
                yield f"--{field.name.replace('_', '-')}: ignored, since --config is given"

    def applied_to(self, configuration: SchedulerConfiguration) -> SchedulerConfiguration:
        """Return the configuration with what the flags say; raises ConfigurationError for values that are none."""
        # A qps of 0 or less knows no burst (upstream: client-go rest.UnversionedRESTClientForConfigAndClient).
        if self.kube_api_burst == 0 and (self.kube_api_qps is None or self.kube_api_qps > 0):
            raise ConfigurationError([invalid("--kube-api-burst", 0, "must be greater than 0")])
        switches: dict[str, Any] = {
            "enable_profiling": self.profiling,
            "enable_contention_profiling": self.contention_profiling,
        }
        # As in the file, 0 is the default.
        given: dict[str, Any] = {
            "qps": self.kube_api_qps,
            "burst": self.kube_api_burst,
            "content_type": self.kube_api_content_type,
        }
        connection = replace(configuration.client_connection, **{name: each for name, each in given.items() if each})
        given_switches = {name: each for name, each in switches.items() if each is not None}
        return replace(configuration, client_connection=connection, **given_switches)


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedFlags:
    """Flags of kube-scheduler whose meaning bayplan fulfils whatever they say."""

    section: ClassVar = "Options without effect"

    show_hidden_metrics: str | None = flag(
        "--show-hidden-metrics-for-version VERSION", "Accepted: no metric is hidden.", read=_previous_version
    )
    log_flush_frequency: timedelta | None = flag(
        "--log-flush-frequency DURATION",
        "Accepted: no line waits for a flush.",
        read=partial(duration, least=timedelta.resolution, example='greater than 0, such as "5s"'),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFlags:
    """What is logged."""

    section: ClassVar = "Logging options"

    logging_format: str = flag("--logging-format text|json", "How lines are written to standard error.", default="text")
    verbosity: int = flag(
        "--v -v INT",
        "How much is logged: 2 each placement and verdict, 5 each move in the queue, 10 each node's scores.",
        default=0,
        type=click.IntRange(0),
    )


@command(
    examples=(
        "bayplan run --config scheduler.yaml",
        "bayplan run --kubeconfig ~/.kube/config --context test --scheduler-name packer -v 2",
        "bayplan run --config scheduler.yaml --write-config-to effective.yaml",
    ),
)
def run(
    *,
    flags: RunFlags,
    serving: ServingOptions,
    authentication: AuthenticationOptions,
    authorization: AuthorizationOptions,
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
        from bayplan.cli.serve import serve, write_configuration  # noqa: PLC0415

    if flags.write_config_to is not None:
        write_configuration(flags, election, deprecated, flags.write_config_to)
        return
    options = replace(serving, authentication=authentication, authorization=authorization, flags=flag_values())
    serve(flags, election, deprecated, options)
