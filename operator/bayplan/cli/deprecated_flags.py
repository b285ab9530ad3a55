"""kube-scheduler's deprecated flags: all but the last count only where there is no `--config`."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Annotated, ClassVar

import click

from bayplan.cli.flag_groups import Flag
from bayplan.config.errors import ConfigurationError, FieldError, invalid
from bayplan.config.feature_gates import BOOLEANS
from bayplan.config.fields import parse_duration
from bayplan.config.types import SchedulerConfiguration

UNSCHEDULABLE_SECONDS = 300.0
_LEAST_UNSCHEDULABLE_SECONDS = 1.0
_UNSCHEDULABLE = "--pod-max-in-unschedulable-pods-duration"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeprecatedFlags:
    """What fields of the configuration say today; None for a flag that was not given."""

    section: ClassVar = "Deprecated options"

    profiling: Annotated[
        str | None,
        Flag("--profiling", metavar="BOOL", help="Deprecated: enableProfiling, where there is no --config."),
    ] = None
    contention_profiling: Annotated[
        str | None,
        Flag("--contention-profiling", metavar="BOOL", help="Deprecated: enableContentionProfiling, likewise."),
    ] = None
    kube_api_qps: Annotated[
        float | None,
        Flag("--kube-api-qps", type=float, metavar="FLOAT", help="Deprecated: clientConnection.qps, likewise."),
    ] = None
    kube_api_burst: Annotated[
        int | None,
        Flag(
            "--kube-api-burst",
            type=click.IntRange(0),
            metavar="INT",
            help="Deprecated: clientConnection.burst, likewise.",
        ),
    ] = None
    kube_api_content_type: Annotated[
        str | None,
        Flag("--kube-api-content-type", metavar="TYPE", help="Deprecated: has no effect, bayplan speaks JSON."),
    ] = None
    pod_max_in_unschedulable: Annotated[
        str | None,
        Flag(
            _UNSCHEDULABLE,
            metavar="DURATION",
            help="Deprecated: when a pod that no event woke is tried again; 5m by default.",
        ),
    ] = None

    @property
    def unschedulable_seconds(self) -> float:
        """How long a pod waits for an event before it is tried again; raises ConfigurationError."""
        text = self.pod_max_in_unschedulable
        if text is None:
            return UNSCHEDULABLE_SECONDS
        duration = parse_duration(text)
        if duration is None or duration.total_seconds() < _LEAST_UNSCHEDULABLE_SECONDS:
            raise ConfigurationError(
                [invalid(_UNSCHEDULABLE, text, 'must be a duration of at least a second, as "5m"')]
            )
        return duration.total_seconds()

    def ignored(self) -> Iterator[str]:
        """Say of each flag that was given and counts only without `--config` that it is ignored."""
        for field in fields(self):
            if field.name != "pod_max_in_unschedulable" and getattr(self, field.name) is not None:
                yield f"--{field.name.replace('_', '-')}: ignored, since --config is given"

    def applied_to(self, configuration: SchedulerConfiguration) -> SchedulerConfiguration:
        """Return the configuration with what the flags say; raises ConfigurationError for values that are none."""
        errors: list[FieldError] = []

        def switch(flag: str, text: str | None, *, otherwise: bool) -> bool:
            if text is not None and text not in BOOLEANS:
                errors.append(invalid(flag, text, "must be true or false"))
            return otherwise if text is None else BOOLEANS.get(text, otherwise)

        # A qps of 0 or less knows no burst (upstream: client-go rest.UnversionedRESTClientForConfigAndClient).
        if self.kube_api_burst == 0 and (self.kube_api_qps is None or self.kube_api_qps > 0):
            errors.append(invalid("--kube-api-burst", 0, "must be greater than 0"))
        connection = configuration.client_connection
        changed = replace(
            configuration,
            enable_profiling=switch("--profiling", self.profiling, otherwise=configuration.enable_profiling),
            enable_contention_profiling=switch(
                "--contention-profiling",
                self.contention_profiling,
                otherwise=configuration.enable_contention_profiling,
            ),
            # As in the file, 0 is the default.
            client_connection=replace(
                connection,
                qps=self.kube_api_qps or connection.qps,
                burst=self.kube_api_burst or connection.burst,
                content_type=self.kube_api_content_type or connection.content_type,
            ),
        )
        if errors:
            raise ConfigurationError(errors)
        return changed
