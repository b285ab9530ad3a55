"""`bayplan doctor`: what keeps a cluster from being packed, what that costs, and what mends it."""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import click
from click.exceptions import Exit

from bayplan.cli import FAILED
from bayplan.cli.cluster_source import ClusterFlags, read_source
from bayplan.cli.flags import command
from bayplan.config.flags import flag

if TYPE_CHECKING:
    from bayplan.config.types import SchedulerConfiguration
    from bayplan.doctor.finding import Finding

FOUND: Final = 1
"""Exit code where something was found."""


@dataclass(frozen=True, kw_only=True)
class _Flags:
    output: str = flag("--output -o text|json", "For people, or for programs.", default="text")


@command(
    examples=(
        "bayplan doctor --config scheduler.yaml",
        "bayplan doctor --cluster cluster.json.gz --config scheduler.yaml",
        "bayplan doctor --cluster cluster/ -o json",
    ),
)
def doctor(flags: _Flags, source: ClusterFlags) -> None:
    """Say what keeps this cluster from being packed, what it costs here, and what mends it.

    What a fix would bring is found by simulation: all pods that can move are placed anew, with it and without it.
    Nothing is changed.

    Exit codes: 0 nothing is found, 1 something is found, or the cluster cannot be read, 2 wrong input.
    """
    from bayplan.doctor.checkup import findings  # noqa: PLC0415
    from bayplan.doctor.finding import Patient, print_findings  # noqa: PLC0415
    from bayplan.simulate.changes import NO_CHANGES  # noqa: PLC0415
    from bayplan.simulate.documents import ClusterFileError  # noqa: PLC0415
    from bayplan.simulate.input_files import STDIN, InputFile, read_file  # noqa: PLC0415
    from bayplan.simulate.report import encode  # noqa: PLC0415
    from bayplan.simulate.tables import Printer  # noqa: PLC0415

    with TemporaryDirectory() as folder:
        if STDIN in source.cluster:
            # Files are read twice.
            kept = Path(folder) / "stdin"
            kept.write_bytes(read_file(InputFile(STDIN)))
            source = replace(source, cluster=[str(kept) if each == STDIN else each for each in source.cluster])
        # A policy of the descheduler is a file that no API server takes.
        given = read_source(source, NO_CHANGES, validate="warn")
        others = [*_others(source.cluster)]
    if not given.objects.nodes:
        # No check finds anything then, which would read as a clean bill.
        raise ClusterFileError("there is no Node that can be read, so nothing can be looked for")
    configuration = given.each_configured[0].configuration
    found = findings(Patient(configuration, given.objects, others))
    if not source.cluster:
        found += _rights(source, configuration)
    if flags.output == "json":
        sys.stdout.write(encode({"findings": found}).decode())
    else:
        print_findings(Printer(sys.stdout), found)
    if found:
        raise Exit(FOUND)


def _others(files: Sequence[str]) -> Iterator[tuple[str, Any]]:
    import msgspec  # noqa: PLC0415

    from bayplan.doctor.surroundings import KINDS  # noqa: PLC0415
    from bayplan.simulate.input_files import objects_in  # noqa: PLC0415

    for raw in objects_in(files):
        if raw.kind in KINDS:
            yield raw.kind, msgspec.json.decode(raw.value)


def _rights(source: ClusterFlags, configuration: "SchedulerConfiguration") -> "list[Finding]":
    import msgspec  # noqa: PLC0415

    from bayplan.api.client import ApiClient  # noqa: PLC0415
    from bayplan.api.credentials import load_credentials  # noqa: PLC0415
    from bayplan.api.errors import AmbiguousError, UnreachableError  # noqa: PLC0415
    from bayplan.doctor.surroundings import PATH, missing_rights  # noqa: PLC0415

    async def asked() -> "list[Finding]":
        api = ApiClient(load_credentials(source.kubeconfig, source.context, master=source.master), qps=20, burst=20)

        async def ask(body: bytes) -> bytes:
            return (await api.request("POST", PATH, body=body)).body

        try:
            return await missing_rights(configuration, ask)
        finally:
            await api.close()

    try:
        return asyncio.run(asked())
    except (AmbiguousError, UnreachableError, msgspec.DecodeError) as error:
        click.echo(f"rights: {error}", err=True)
        raise Exit(FAILED) from None
