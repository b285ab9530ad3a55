"""Where `bayplan plan` and `bayplan doctor` have a cluster from: files, or the cluster that there is."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from bayplan.cli import FAILED
from bayplan.cli.flags import FEATURE_GATES, SCHEDULER_NAME, check_standard_input
from bayplan.cli.process import answer_or_end
from bayplan.config.flags import CONTEXT, FILE_TEXT, KUBECONFIG, MASTER, flag

if TYPE_CHECKING:
    from bayplan.cli.simulation_input import SimulationInput
    from bayplan.simulate.changes import Changes
    from bayplan.snapshot.snapshot import Snapshot


@dataclass(frozen=True, kw_only=True)
class ClusterFlags:
    """Which cluster is looked at, and by which configuration."""

    cluster: Sequence[str] = flag(
        "--cluster FILE",
        "Files as for `bayplan simulate`, a snapshot or what kubectl writes; - is standard input. Without any, the "
        "cluster itself is read, and nothing is written there.",
        default=(),
        type=FILE_TEXT,
    )
    config: Path | None = flag(
        "--config FILE",
        "KubeSchedulerConfiguration or legacy Policy; - is standard input; without it one profile, MostAllocated.",
    )
    scheduler_name: str | None = SCHEDULER_NAME()
    feature_gates: Sequence[str] = FEATURE_GATES()
    kubeconfig: Path | None = KUBECONFIG()
    context: str | None = CONTEXT()
    master: str | None = MASTER()

    def __post_init__(self) -> None:
        """Refuse standard input for two files."""
        check_standard_input(cluster=self.cluster, config=() if self.config is None else (self.config,))


def read_source(flags: ClusterFlags, changes: "Changes", *, validate: str = "strict") -> "SimulationInput":
    """Return the cluster and what decides about it; what cannot be read ends the command as in `bayplan snapshot`."""
    from bayplan.cli.simulation_input import read_input  # noqa: PLC0415
    from bayplan.snapshot.snapshot import pieces, write  # noqa: PLC0415

    read = partial(
        read_input,
        configs=[] if flags.config is None else [flags.config],
        scheduler_name=flags.scheduler_name,
        feature_gates=flags.feature_gates,
        changes=changes,
        validate=validate,
        tries_all=False,
    )
    if flags.cluster:
        if any((flags.kubeconfig, flags.context, flags.master)):
            raise click.UsageError("--kubeconfig, --context and --master are about the cluster itself, not --cluster.")
        return read(flags.cluster)
    with TemporaryDirectory() as folder:
        path = f"{folder}/cluster.json"
        write(path, pieces(take(flags.kubeconfig, flags.context, flags.master)))
        return read([path])


def take(
    kubeconfig: Path | None, context: str | None, master: str | None, *, ignore_forbidden: bool = True
) -> "Snapshot":
    """Read a live cluster and say what was left out; where it cannot be read, end the command with a line."""
    from bayplan.api.credentials import load_credentials  # noqa: PLC0415
    from bayplan.client.errors import reached  # noqa: PLC0415
    from bayplan.snapshot.listing import list_kind  # noqa: PLC0415
    from bayplan.snapshot.snapshot import MissingRightsError, take_snapshot  # noqa: PLC0415

    async def taking() -> "Snapshot":
        credentials = load_credentials(kubeconfig, context, master=master)
        await reached(credentials)
        return await take_snapshot(partial(list_kind, credentials), ignore_forbidden=ignore_forbidden)

    try:
        taken: Snapshot = answer_or_end(taking())
    except MissingRightsError as error:
        click.echo(str(error), err=True)
        raise Exit(FAILED) from None
    for line in (*taken.forbidden, *taken.unreadable):
        click.echo(f"left out: {line}", err=True)
    return taken
