"""kube-scheduler's flags `--leader-elect...`, which win over the file."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from bayplan.cli.flag_groups import Flag
from bayplan.config.connections import LeaderElection, elector_errors
from bayplan.config.errors import ConfigurationError, FieldError, invalid
from bayplan.config.feature_gates import BOOLEANS
from bayplan.config.fields import parse_duration

_DURATIONS = ("lease_duration", "renew_deadline", "retry_period")
_NAMES = ("resource_lock", "resource_name", "resource_namespace")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElectionFlags:
    """What the flags say; None for one that was not given."""

    section: ClassVar = "Leader election options"

    leader_elect: Annotated[
        str | None,
        Flag(
            "--leader-elect",
            metavar="BOOL",
            help="Contend for a lease, and schedule only while holding it; by default, where the role allows it.",
        ),
    ] = None
    lease_duration: Annotated[
        str | None,
        Flag(
            "--leader-elect-lease-duration",
            metavar="DURATION",
            help="How long others wait after the last renewal they saw before they take over; 15s by default.",
        ),
    ] = None
    renew_deadline: Annotated[
        str | None,
        Flag(
            "--leader-elect-renew-deadline",
            metavar="DURATION",
            help="How long after its last renewal the leader goes on; 10s by default, less than the lease's duration.",
        ),
    ] = None
    retry_period: Annotated[
        str | None,
        Flag("--leader-elect-retry-period", metavar="DURATION", help="Time between renewals; 2s by default."),
    ] = None
    resource_lock: Annotated[
        str | None, Flag("--leader-elect-resource-lock", metavar="KIND", help="Always leases.")
    ] = None
    resource_name: Annotated[
        str | None,
        Flag("--leader-elect-resource-name", metavar="NAME", help="The lease's name; bayplan by default."),
    ] = None
    resource_namespace: Annotated[
        str | None,
        Flag(
            "--leader-elect-resource-namespace", metavar="NAME", help="The lease's namespace; kube-system by default."
        ),
    ] = None
    ignore_other_leases: Annotated[
        bool,
        Flag(
            "--ignore-other-leases",
            is_flag=True,
            help="Unless told to contend, schedule without looking whether another scheduler of the same pods leads.",
        ),
    ] = False


def with_flags(settings: LeaderElection, flags: LeaderElectionFlags, environment: Mapping[str, str]) -> LeaderElection:
    """Return the settings of the file with those of the flags, and whether to contend decided.

    What nobody decided is decided by where it runs: replicas are pods. Elsewhere it stays None, since it depends on the
    Leases that are found.

    Raises:
        ConfigurationError: a flag is not what it should be, or no elector can work with all together.
    """
    merged = replace(settings, **_given(flags))  # type: ignore[arg-type]  # by the names and types of its fields
    if merged.leader_elect is None and environment.get("KUBERNETES_SERVICE_HOST"):
        merged = replace(merged, leader_elect=True)
    if errors := elector_errors(merged):
        raise ConfigurationError(errors)
    return merged


def _given(flags: LeaderElectionFlags) -> dict[str, object]:
    """The values of the flags that were given, by the name of the setting."""
    errors: list[FieldError] = []
    given: dict[str, object] = {name: text for name in _NAMES if (text := getattr(flags, name)) is not None}
    if flags.leader_elect is not None:
        given["leader_elect"] = BOOLEANS.get(flags.leader_elect)
        if given["leader_elect"] is None:
            errors.append(invalid("--leader-elect", flags.leader_elect, "must be true or false"))
    for name in _DURATIONS:
        if (text := getattr(flags, name)) is not None:
            given[name] = parse_duration(text)
            if given[name] is None:
                flag = f"--leader-elect-{name.replace('_', '-')}"
                errors.append(invalid(flag, text, 'must be a duration such as "15s"'))
    if errors:
        raise ConfigurationError(errors)
    return given
