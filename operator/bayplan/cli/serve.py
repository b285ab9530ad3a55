"""From the flags of `bayplan run` to a scheduler that serves, and to the end of its process."""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NoReturn

import typer
import uvloop

from bayplan import __version__
from bayplan.api.credentials import load_credentials
from bayplan.api.errors import CredentialsError
from bayplan.cli import BAD_INPUT
from bayplan.cli.config import load_checked
from bayplan.cli.feature_gates import without_effect
from bayplan.cli.leader_election import LeaderElectionFlags, with_flags
from bayplan.cli.process_end import end_process
from bayplan.config.errors import ConfigurationError, FieldNote, note_lines
from bayplan.config.types import SchedulerConfiguration
from bayplan.config.watched_file import WatchedFile
from bayplan.controller.app import App
from bayplan.controller.reload import ConfigurationSource, own_pod
from bayplan.server.options import ServingOptions

logger = logging.getLogger(__name__)

KUBE_SCHEDULERS_LEASE = "kube-scheduler"
"""What a file from `kube-scheduler --write-config-to` names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationFlags:
    """The flags that a configuration is made of, None for what was not given; see `run` for what they mean."""

    file: Path | None
    scheduler_name: str | None
    feature_gates: Sequence[str] | None
    leader_election: LeaderElectionFlags

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
        election = with_flags(configuration.leader_election, self.leader_election, os.environ)
        for line in note_lines(self.file, notes):
            logger.warning("%s", line)
        if election.leader_elect and election.resource_name == KUBE_SCHEDULERS_LEASE:
            logger.warning("leaderElection.resourceName is kube-scheduler's lease: one of the two schedules at a time")
        for line in without_effect(configuration):
            logger.warning("%s", line)
        return replace(configuration, leader_election=election)


def serve(
    flags: ConfigurationFlags,
    serving: ServingOptions,
    rejection_backoff_seconds: float,
    *,
    kubeconfig: Path | None,
    context: str | None,
) -> NoReturn:
    """Schedule until SIGTERM, or until that is not possible any more, and end the process with its exit code.

    A node whose kubelet had no room for a pod gets none for `rejection_backoff_seconds`.

    Raises:
        typer.Exit: it cannot begin; why is on standard error.
    """
    # Before it is read, so that a change meanwhile is seen.
    source = None
    if flags.file is not None:
        watched = WatchedFile(flags.file)
        load = partial(flags.load, only_regular=watched.is_regular)
        source = ConfigurationSource(watched, load, own_pod(os.environ))
    try:
        configuration = flags.load()
    except ConfigurationError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(BAD_INPUT) from None

    logger.info("bayplan starts version=%s", __version__)

    async def schedule() -> NoReturn:
        named = configuration.client_connection.kubeconfig
        credentials = load_credentials(kubeconfig or (Path(named) if named else None), context)
        backoff = rejection_backoff_seconds
        app = App(configuration, credentials, serving, source, rejection_backoff_seconds=backoff)
        # From here: the loop's end waits for threads, and one may read from a file system that hangs.
        end_process(await app.run())

    try:
        uvloop.run(schedule())
    except CredentialsError as error:
        typer.echo(f"bayplan: {error}", err=True)
        raise typer.Exit(BAD_INPUT) from None
    except OSError as error:
        typer.echo(f"bayplan: {error.filename or 'cannot start'}: {error.strerror or error}", err=True)
        raise typer.Exit(1) from None
