"""`bayplan snapshot`: what decisions depend on in a live cluster, as a file."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from click.exceptions import Exit

from bayplan.cli import FAILED
from bayplan.cli.cluster_source import take
from bayplan.cli.flags import OUTPUT_FILE, command
from bayplan.config.flags import CONTEXT, KUBECONFIG, MASTER, flag


@dataclass(frozen=True, kw_only=True)
class _Flags:
    output: str = OUTPUT_FILE()
    kubeconfig: Path | None = KUBECONFIG()
    context: str | None = CONTEXT()
    master: str | None = MASTER()
    redact: bool = flag("--redact", "Replace names, labels and images by hashes; decisions stay the same.")
    keep_label: Sequence[str] = flag(
        "--keep-label KEY",
        "With --redact: a label that stays with its values, as a configuration names it. Can be given several times.",
        default=(),
    )
    ignore_forbidden: bool = flag(
        "--ignore-forbidden",
        "Leave out kinds that you may not list, but for nodes and pods, in place of ending with an error.",
    )


@command(
    examples=(
        "bayplan snapshot -o cluster.json.gz",
        "bayplan snapshot --context production --redact -o redacted.json.gz",
        "bayplan snapshot -o - | bayplan simulate --cluster - --scheduler-name default-scheduler",
    ),
)
def snapshot(flags: _Flags) -> None:
    """Write what decisions depend on in a live cluster to a file, for simulate.

    Nodes, pods, workloads, volumes and the like are read, cut to the fields that schedulers look at: no environment,
    no command, no annotation. Secrets and ConfigMaps are never asked for.

    Exit codes: 0 success, 1 the cluster cannot be read or the file not be written, 2 wrong input.
    """
    from bayplan.snapshot.snapshot import pieces  # noqa: PLC0415

    if flags.keep_label and not flags.redact:
        raise click.UsageError("--keep-label says what --redact leaves as it is: give both.")
    taken = take(flags.kubeconfig, flags.context, flags.master, ignore_forbidden=flags.ignore_forbidden)
    shown = written(flags.output, pieces(taken, redact=flags.redact, kept_labels=flags.keep_label))
    told = taken.without_devices() if flags.redact else taken
    counts = ", ".join(f"{count} {kind}" for kind, count in told.counts.items())
    click.echo(f"{shown}: {counts or 'the cluster is empty'}", err=True)


def written(output: str, pieces: Iterable[bytes]) -> str:
    """Write the pieces to `output` and return what messages call that; where it cannot be, end with one line."""
    from bayplan.config.errors import quote_unprintable  # noqa: PLC0415
    from bayplan.snapshot.snapshot import STDOUT, write  # noqa: PLC0415

    shown = "standard output" if output == STDOUT else quote_unprintable(output)
    try:
        write(output, pieces)
    except (OSError, ValueError) as error:
        if output == STDOUT or isinstance(error, BrokenPipeError):
            raise
        # A name with a null byte is a ValueError.
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        click.echo(f"{shown}: cannot be written: {reason}", err=True)
        raise Exit(FAILED) from None
    return shown
