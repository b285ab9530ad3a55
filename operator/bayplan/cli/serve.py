"""From the flags of `bayplan run` to a scheduler that serves, and to the end of its process."""

import logging
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

import click
import uvloop
from click.exceptions import Exit

from bayplan.api.credentials import load_credentials
from bayplan.api.errors import CredentialsError
from bayplan.cli import BAD_INPUT, FAILED, tell_line
from bayplan.cli.config import load_checked, without_effect
from bayplan.cli.process import end_process
from bayplan.cli.run import DeprecatedFlags, LeaderElectionFlags, RunFlags
from bayplan.config.convert import to_effective_yaml
from bayplan.config.document import WatchedFile
from bayplan.config.errors import ConfigurationError, FieldWarning, forbidden, line_of
from bayplan.config.types import SchedulerConfiguration
from bayplan.controller.app import App
from bayplan.controller.build import build
from bayplan.controller.operator_thread import DEFAULT_SCHEDULER
from bayplan.controller.reload import ConfigurationSource, own_pod
from bayplan.logs.line_writer import write_aside
from bayplan.scheduler.shadow import shadow_configuration
from bayplan.server.options import ServingOptions

logger = logging.getLogger(__name__)

KUBE_SCHEDULERS_LEASE = "kube-scheduler"
"""What a file from `kube-scheduler --write-config-to` names."""


def _load(
    flags: RunFlags, election: LeaderElectionFlags, deprecated: DeprecatedFlags, *, only_regular: bool = False
) -> SchedulerConfiguration:
    """Read and check the file, add what the flags say, and log what has no effect.

    With `only_regular` the file may be no pipe.

    Raises:
        ConfigurationError: with everything that is wrong.
    """
    notes: list[FieldWarning] = []
    configuration = load_checked(
        flags.config, flags.scheduler_name, flags.feature_gates, notes, only_regular=only_regular
    )
    if flags.config is None:
        configuration = deprecated.applied_to(configuration)
    elected = election.applied_to(configuration.leader_election, os.environ)
    warnings = [line_of(str(flags.config), each) for each in notes]
    if not flags.shadow and elected.leader_elect is not False and elected.resource_name == KUBE_SCHEDULERS_LEASE:
        warnings.append("leaderElection.resourceName is kube-scheduler's lease: one of the two schedules at a time")
    warnings += without_effect(configuration)
    if flags.config is not None:
        warnings += deprecated.ignored()
    for line in warnings:
        logger.warning("%s", line)
    configuration = replace(configuration, leader_election=elected)
    if not flags.shadow:
        return configuration
    if election.leader_elect:
        raise ConfigurationError([forbidden("--leader-elect", "a shadow writes nothing, and so no Lease either")])
    return shadow_configuration(configuration, [*dict.fromkeys(flags.of)] or [DEFAULT_SCHEDULER])


def write_configuration(
    flags: RunFlags, election: LeaderElectionFlags, deprecated: DeprecatedFlags, path: Path
) -> None:
    """Write what is in force with these flags to `path`, `-` for standard output, as `config show` prints it.

    Raises:
        ConfigurationError: there is none.
        Exit: it cannot be written; why is on standard error.
    """
    try:
        text = to_effective_yaml(_load(flags, election, deprecated))
        if str(path) == "-":
            click.echo(text, nl=False)
        else:
            path.write_text(text)
    except OSError as error:
        tell_line(f"--write-config-to: {path}: {error.strerror or error}")
        raise Exit(FAILED) from None


def serve(
    flags: RunFlags, election: LeaderElectionFlags, deprecated: DeprecatedFlags, serving: ServingOptions
) -> NoReturn:
    """Schedule until SIGTERM, or until that is not possible any more, and end the process with its exit code.

    Raises:
        ConfigurationError: there is none that is good.
        Exit: it cannot begin; why is on standard error.
    """
    # Before it is read, so that a change meanwhile is seen.
    source = None
    if flags.config is not None and not flags.shadow:
        watched = WatchedFile(flags.config)
        load = partial(_load, flags, election, deprecated, only_regular=watched.is_regular)
        source = ConfigurationSource(watched, load, own_pod(os.environ))
    configuration = _load(flags, election, deprecated)

    async def schedule() -> NoReturn:
        named = configuration.client_connection.kubeconfig
        file = flags.kubeconfig or (Path(named) if named else None)
        credentials = load_credentials(file, flags.context, master=flags.master)
        # The role of an installation's replicas allows no look at other Leases, and they are not to wait for it. They
        # are pods, or the file tells them to contend.
        by_hand = bool(election.leader_elect) and "KUBERNETES_SERVICE_HOST" not in os.environ
        is_replica = configuration.leader_election.leader_elect and not by_hand
        parts = build(
            configuration,
            credentials,
            source,
            serving=serving,
            heeds_other_leases=not (flags.shadow or election.ignore_other_leases or is_replica),
            rejection_backoff_seconds=float(flags.kubelet_rejection_backoff),
            unschedulable_seconds=deprecated.unschedulable_seconds,
            is_shadow=flags.shadow,
        )
        write_aside()
        # From here: the loop's end waits for threads, and one may read from a file system that hangs.
        end_process(await App(parts).run())

    try:
        uvloop.run(schedule())
    except CredentialsError as error:
        tell_line(str(error))
        raise Exit(BAD_INPUT) from None
    except OSError as error:
        tell_line(f"bayplan: {error.filename or 'cannot start'}: {error.strerror or error}")
        raise Exit(FAILED) from None
