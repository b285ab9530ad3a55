"""`bayplan web`: a read-only page of a cluster, for the person who starts it."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from bayplan.cli import BAD_INPUT, tell_line
from bayplan.cli.cluster_flags import FILE_NAME, complete_file_name
from bayplan.cli.help_sections import Command
from bayplan.cli.scheduler_target import target_options
from bayplan.config.errors import InputError

if TYPE_CHECKING:
    import socket

    from bayplan.client.leader import Target
    from bayplan.web.configurations import ComparedSource
    from bayplan.web.snapshot import SnapshotSource

NOT_REACHED: Final = 1
"""Exit code where there is no scheduler to show."""


@click.command(
    cls=Command,
    examples=(
        "bayplan web",
        "bayplan web --cluster examples/cluster/explain.yaml",
        "bayplan web --cluster cluster.json.gz --config now.yaml --config tomorrow.yaml",
        "kubectl get nodes,pods -A -o json | bayplan web --cluster - --scheduler-name default-scheduler",
    ),
)
@click.option(
    "--cluster",
    metavar="FILE",
    shell_complete=complete_file_name,
    multiple=True,
    help="Show the cluster in these files, as simulate --cluster reads them, and what would come of its pods; "
    "otherwise the scheduler that runs is asked.",
)
@click.option(
    "--config",
    metavar="FILE",
    type=FILE_NAME,
    multiple=True,
    help="With --cluster: KubeSchedulerConfiguration or legacy Policy; otherwise one profile, MostAllocated. The page "
    "shows what the first makes of the cluster, and several side by side.",
)
@click.option("--scheduler-name", metavar="NAME", help="With --cluster: rename the only profile.")
@click.option(
    "--port", metavar="PORT", type=click.IntRange(0, 65535), default=0, help="On 127.0.0.1; by default a free one."
)
@click.option("--browser/--no-browser", default=True, help="Open the page in a browser.")
@target_options
def web(
    *,
    cluster: tuple[str, ...],
    config: tuple[Path, ...],
    scheduler_name: str | None,
    port: int,
    browser: bool,
    target: "Target",
) -> None:
    """Show a cluster as a page: which nodes are full, which could be emptied, and why pods wait.

    The page is served to this machine alone, and to the first browser that opens the address that is printed. It
    changes nothing. Ctrl-C ends it.

    Without --cluster it follows the scheduler that runs, which is found and asked as bayplan explain does it.
    """
    if not cluster and (config or scheduler_name is not None):
        raise click.UsageError("--config and --scheduler-name are about --cluster: a scheduler that runs has its own")
    # Imported here so that the overview of commands does not wait for them.
    from bayplan.cli.browser import opener  # noqa: PLC0415
    from bayplan.client.errors import CannotLogInError, ClientError  # noqa: PLC0415
    from bayplan.web.serve import serve  # noqa: PLC0415

    if cluster:
        source = _snapshot(cluster, config, scheduler_name)
        with _listening(port) as listening, opener("bayplan web", browser=browser) as opened:
            asyncio.run(serve(source, source.inspector, listening, opened))
        return
    try:
        with _listening(port) as listening, opener("bayplan web", browser=browser) as opened:
            asyncio.run(_serve_remote(target, listening, opened))
    except ClientError as error:
        tell_line(str(error))
        sys.exit(BAD_INPUT if isinstance(error, CannotLogInError) else NOT_REACHED)


async def _serve_remote(target: "Target", listening: "socket.socket", opened: Callable[[str], None]) -> None:
    from bayplan.client.connect import connect  # noqa: PLC0415
    from bayplan.web.remote import RemoteSource  # noqa: PLC0415
    from bayplan.web.serve import serve  # noqa: PLC0415

    async with connect(target) as client:
        # Whoever may not ask is told so here, not on a page.
        await client.summary()
        source = RemoteSource(client)
        await serve(source, source, listening, opened)


def _snapshot(
    cluster: tuple[str, ...], configs: tuple[Path, ...], scheduler_name: str | None
) -> "SnapshotSource | ComparedSource":
    from bayplan.cli.simulation_input import read_input  # noqa: PLC0415
    from bayplan.config.errors import quote_unprintable  # noqa: PLC0415
    from bayplan.web.configurations import ComparedSource  # noqa: PLC0415
    from bayplan.web.snapshot import SnapshotSource  # noqa: PLC0415

    each_configured, objects, *_ = read_input(cluster, configs, scheduler_name, ())
    name = ", ".join(map(_title, cluster))
    if len(each_configured) == 1:
        return SnapshotSource(each_configured[0].configuration, objects, name=name)
    named = [(quote_unprintable(str(each.file)), each.configuration) for each in each_configured]
    return ComparedSource(named, objects, name=name)


def _title(file: str) -> str:
    return "standard input" if file == "-" else Path(file).name or file


def _listening(port: int) -> "socket.socket":
    from bayplan.web.serve import loopback_socket  # noqa: PLC0415

    try:
        return loopback_socket(port)
    except OSError as error:
        raise InputError(f"--port: 127.0.0.1:{port}: {os.strerror(error.errno or 0)}") from None
