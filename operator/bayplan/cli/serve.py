"""From the flags of `bayplan run` to a scheduler that serves, and to the end of its process."""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NoReturn

import uvloop
from click.exceptions import Exit

from bayplan.api.credentials import load_credentials
from bayplan.api.errors import CredentialsError
from bayplan.cli import BAD_INPUT, tell_line
from bayplan.cli.config import load_checked
from bayplan.cli.deprecated_flags import DeprecatedFlags
from bayplan.cli.feature_gates import without_effect
from bayplan.cli.leader_election import LeaderElectionFlags, with_flags
from bayplan.cli.process_end import end_process
from bayplan.config.convert import to_effective_yaml
from bayplan.config.errors import FieldNote, note_lines
from bayplan.config.types import SchedulerConfiguration
from bayplan.config.watched_file import WatchedFile
from bayplan.controller.app import App
from bayplan.controller.reload import ConfigurationSource, own_pod
from bayplan.logs.setup import write_aside
from bayplan.server.options import ServingOptions

logger = logging.getLogger(__name__)

KUBE_SCHEDULERS_LEASE = "kube-scheduler"
"""What a file from `kube-scheduler --write-config-to` names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationFlags:
    """The flags that a configuration is made of, None for what was not given; see `run` for what they mean."""

    file: Path | None
    scheduler_name: str | None
    feature_gates: Sequence[str]
    leader_election: LeaderElectionFlags
    deprecated: DeprecatedFlags = field(default_factory=DeprecatedFlags)

    def load(self, *, only_regular: bool = False) -> SchedulerConfiguration:
        """Read and check the file, add what the flags say, and log what has no effect.

        With `only_regular` the file may be no pipe.

        Raises:
            ConfigurationError: with everything that is wrong.
        """
        notes: list[FieldNote] = []
        configuration = load_checked(
            self.file, self.scheduler_name, self.feature_gates, notes, only_regular=only_regular
        )
        if self.file is None:
            configuration = self.deprecated.applied_to(configuration)
        election = with_flags(configuration.leader_election, self.leader_election, os.environ)
        for line in note_lines(self.file, notes):
            logger.warning("%s", line)
        if election.leader_elect is not False and election.resource_name == KUBE_SCHEDULERS_LEASE:
            logger.warning("leaderElection.resourceName is kube-scheduler's lease: one of the two schedules at a time")
        for line in without_effect(configuration):
            logger.warning("%s", line)
        for line in self.deprecated.ignored() if self.file is not None else ():
            logger.warning("%s", line)
        return replace(configuration, leader_election=election)


@dataclass(frozen=True, slots=True)
class Cluster:
    """What the flags say of the API server; see `run` for what they mean."""

    kubeconfig: Path | None
    context: str | None
    master: str | None


def write_configuration(flags: ConfigurationFlags, path: Path) -> None:
    """Write what is in force with these flags to `path`, as `config show` prints it.

    Raises:
        ConfigurationError: there is none.
        Exit: it cannot be written; why is on standard error.
    """
    try:
        path.write_text(to_effective_yaml(flags.load()))
    except OSError as error:
        tell_line(f"--write-config-to: {path}: {error.strerror or error}")
        raise Exit(1) from None


def serve(
    flags: ConfigurationFlags,
    cluster: Cluster,
    serving: ServingOptions,
    *,
    rejection_backoff_seconds: float,
    unschedulable_seconds: float,
) -> NoReturn:
    """Schedule until SIGTERM, or until that is not possible any more, and end the process with its exit code.

    A node whose kubelet had no room for a pod gets none for `rejection_backoff_seconds`. A pod that no event woke is
    tried again after `unschedulable_seconds`.

    Raises:
        ConfigurationError: there is none that is good.
        Exit: it cannot begin; why is on standard error.
    """
    # Before it is read, so that a change meanwhile is seen.
    source = None
    if flags.file is not None:
        watched = WatchedFile(flags.file)
        load = partial(flags.load, only_regular=watched.is_regular)
        source = ConfigurationSource(watched, load, own_pod(os.environ))
    configuration = flags.load()

    async def schedule() -> NoReturn:
        named = configuration.client_connection.kubeconfig
        file = cluster.kubeconfig or (Path(named) if named else None)
        credentials = load_credentials(file, cluster.context, master=cluster.master)
        app = App(
            configuration,
            credentials,
            serving,
            source,
            heeds_other_leases=not flags.leader_election.ignore_other_leases,
            rejection_backoff_seconds=rejection_backoff_seconds,
            unschedulable_seconds=unschedulable_seconds,
        )
        write_aside()
        # From here: the loop's end waits for threads, and one may read from a file system that hangs.
        end_process(await app.run())

    try:
        uvloop.run(schedule())
    except CredentialsError as error:
        tell_line(f"bayplan: {error}")
        raise Exit(BAD_INPUT) from None
    except OSError as error:
        tell_line(f"bayplan: {error.filename or 'cannot start'}: {error.strerror or error}")
        raise Exit(1) from None
