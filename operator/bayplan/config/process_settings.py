"""The part of a component configuration that is about the process, not about scheduling; the same since v1alpha1."""

from datetime import timedelta

from bayplan.config.connection_types import ClientConnection, LeaderElection
from bayplan.config.durations import format_duration
from bayplan.config.fields import INT64, Fields
from bayplan.config.types import SchedulerConfiguration


def decode_process_settings(fields: Fields) -> SchedulerConfiguration:
    """A configuration with one default profile and everything else of `fields` that all versions share."""
    with fields.nested("clientConnection") as block:
        client_connection = _client_connection(block)
    with fields.nested("leaderElection") as block:
        leader_election = _leader_election(block)
    profiling = fields.boolean("enableProfiling")
    contention = fields.boolean("enableContentionProfiling")
    percentage = decode_percentage(fields)
    initial = fields.integer("podInitialBackoffSeconds", INT64)
    longest = fields.integer("podMaxBackoffSeconds", INT64)
    initial = 1 if initial is None else initial
    longest = 10 if longest is None else longest
    if initial <= 0:
        fields.invalid("podInitialBackoffSeconds", initial, "must be greater than 0")
    if longest < initial:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        fields.invalid("podMaxBackoffSeconds", longest, detail)
    profiling = True if profiling is None else profiling
    return SchedulerConfiguration(
        leader_election=leader_election,
        client_connection=client_connection,
        enable_profiling=profiling,
        enable_contention_profiling=profiling if contention is None else contention,
        percentage_of_nodes_to_score=percentage,
        pod_initial_backoff_seconds=initial,
        pod_max_backoff_seconds=longest,
    )


def decode_percentage(fields: Fields) -> int | None:
    """`percentageOfNodesToScore`; None when it is not given, which is not the same as 0."""
    percentage = fields.integer("percentageOfNodesToScore")
    if percentage is not None and not 0 <= percentage <= 100:
        fields.invalid("percentageOfNodesToScore", percentage, "not in valid range [0-100]")
    return percentage


def _client_connection(fields: Fields) -> ClientConnection:
    connection = fields.build(ClientConnection, zero_counts=False)
    if connection.burst < 0:
        fields.invalid("burst", connection.burst, "must be non-negative")
    return connection


def _leader_election(fields: Fields) -> LeaderElection:
    election = fields.build(LeaderElection, zero_counts=False)
    # Left out means true: only an explicit false switches the checks off.
    if election.leader_elect is not False:
        _validate_leader_election(fields, election)
    return election


def _validate_leader_election(fields: Fields, election: LeaderElection) -> None:
    for name, duration in (
        ("leaseDuration", election.lease_duration),
        ("renewDeadline", election.renew_deadline),
        ("retryPeriod", election.retry_period),
    ):
        if duration <= timedelta():
            fields.invalid(name, format_duration(duration), "must be greater than zero")
    if election.lease_duration <= election.renew_deadline:
        # The value kube-scheduler shows here is the deadline's.
        shown = format_duration(election.renew_deadline)
        fields.invalid("leaseDuration", shown, "must be greater than `RenewDeadline`")
    if election.resource_lock != "leases":
        detail = 'resourceLock value must be "leases"'
        fields.invalid("resourceLock", election.resource_lock, detail)
