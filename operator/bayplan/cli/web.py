"""`bayplan web`: a read-only page of a cluster, for the person who starts it."""

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bayplan.cli.flags import check_standard_input, command
from bayplan.cli.process import answer_or_end
from bayplan.client.leader import Target
from bayplan.config.errors import InputError
from bayplan.config.flags import FILE_TEXT, flag

if TYPE_CHECKING:
    import socket

    from bayplan.web.sources import ComparedSource, SnapshotSource


@dataclass(frozen=True, kw_only=True)
class _Flags:
    cluster: Sequence[str] = flag(
        "--cluster FILE",
        "Show the cluster in these files, as simulate --cluster reads them, and what would come of its pods; "
        "otherwise the scheduler that runs is asked.",
        default=(),
        type=FILE_TEXT,
    )
    config: Sequence[Path] = flag(
        "--config FILE",
        "With --cluster: KubeSchedulerConfiguration or legacy Policy; - is standard input; otherwise one profile, "
        "MostAllocated. The page shows what the first makes of the cluster, and several side by side.",
        default=(),
    )
    scheduler_name: str | None = flag("--scheduler-name NAME", "With --cluster: rename the only profile.")
    port: int = flag("--port PORT", "On 127.0.0.1; by default a free one.", default=0)
    browser: bool = flag("--browser/--no-browser", "Open the page in a browser.", default=True)

    def __post_init__(self) -> None:
        """Refuse standard input for two files."""
        check_standard_input(cluster=self.cluster, config=self.config)


@command(
    examples=(
        "bayplan web",
        "bayplan web --cluster examples/cluster/explain.yaml",
        "bayplan web --cluster cluster.json.gz --config now.yaml --config tomorrow.yaml",
        "kubectl get nodes,pods -A -o json | bayplan web --cluster - --scheduler-name default-scheduler",
    ),
)
def web(flags: _Flags, target: Target) -> None:
    """Show a cluster as a page: which nodes are full, which could be emptied, and why pods wait.

    The page is served to this machine alone, and to the first browser that opens the address that is printed. It
    changes nothing. Ctrl-C ends it.

    Without --cluster it follows the scheduler that runs, which is found and asked as bayplan explain does it.
    """
    if not flags.cluster and (flags.config or flags.scheduler_name is not None):
        raise click.UsageError("--config and --scheduler-name are about --cluster: a scheduler that runs has its own")
    from bayplan.web.serve import opener, serve  # noqa: PLC0415

    source = _snapshot(flags) if flags.cluster else None
    with _listening(flags.port) as listening, opener("bayplan web", browser=flags.browser) as opened:
        if source is not None:
            asyncio.run(serve(source, source.inspector, listening, opened))
        else:
            answer_or_end(_serve_remote(target, listening, opened))


async def _serve_remote(target: Target, listening: "socket.socket", opened: Callable[[str], None]) -> None:
    from bayplan.client.connect import connect  # noqa: PLC0415
    from bayplan.web.serve import serve  # noqa: PLC0415
    from bayplan.web.sources import RemoteSource  # noqa: PLC0415

    async with connect(target) as client:
        # Whoever may not ask is told so here, not on a page.
        await client.summary()
        await serve(RemoteSource(client), client, listening, opened)


def _snapshot(flags: _Flags) -> "SnapshotSource | ComparedSource":
    from bayplan.cli.simulation_input import read_input  # noqa: PLC0415
    from bayplan.config.errors import quote_unprintable  # noqa: PLC0415
    from bayplan.web.sources import ComparedSource, SnapshotSource  # noqa: PLC0415

    each_configured, objects, *_ = read_input(flags.cluster, flags.config, flags.scheduler_name, ())
    name = ", ".join(map(_title, flags.cluster))
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
