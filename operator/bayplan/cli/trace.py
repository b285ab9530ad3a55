"""`bayplan trace`: makes traces for `bayplan replay`."""

from dataclasses import dataclass
from functools import partial
from typing import Final

import click
from click.exceptions import Exit

from bayplan.cli import FAILED
from bayplan.cli.flags import a_number, command
from bayplan.cli.help_sections import CommandGroup
from bayplan.config.errors import quote_unprintable
from bayplan.config.flags import FILE_TEXT, flag
from bayplan.shown_text import counted

HOURS: Final = partial(
    flag,
    "--hours FLOAT",
    "How many hours of it, from Monday 0:00 on; 24 by default.",
    type=click.FloatRange(0.1, 8760),
    callback=a_number,
)
SCALE: Final = partial(
    flag,
    "--scale FLOAT",
    "How many times the load of the original; 1 by default.",
    type=click.FloatRange(0.001, 100),
    callback=a_number,
)
HINTS: Final = partial(
    flag,
    "--hints SIGMA",
    "Have pods say how long they run, wrong by a lognormal factor of this sigma; 0 is right.",
    type=click.FloatRange(0, 10),
    callback=a_number,
)
DEFAULT_HOURS: Final = 24.0
DEFAULT_SCALE: Final = 1.0


@click.group("trace", cls=CommandGroup, examples=("bayplan trace generate ci-fleet -o trace.jsonl.gz",))
def trace() -> None:
    """Make traces: which pods come when and run how long, for replay."""


@dataclass(frozen=True, kw_only=True)
class _Flags:
    name: str = flag("ci-fleet|openb", "Which cluster it is like.")
    output: str = flag(
        "--output -o FILE",
        "Where to write; compressed if it ends in .gz; - is standard output.",
        required=True,
        type=FILE_TEXT,
    )
    seed: int = flag("--seed INT", "Another seed, another trace.", default=1, type=int)
    hours: float | None = HOURS()
    scale: float | None = SCALE()
    hints: float | None = HINTS()


@command(
    parent=trace,
    short_help="Write a made-up trace to a file.",
    examples=(
        "bayplan trace generate ci-fleet -o trace.jsonl.gz",
        "bayplan trace generate openb --seed 7 --hours 48 --scale 0.1 -o trace.jsonl",
    ),
)
def generate(flags: _Flags) -> None:
    """Write a made-up trace to a file, the same for the same seed.

    ci-fleet is like a CI system of thousands of jobs an hour on nodes of 19 kinds; openb is like a cluster with GPUs.
    """
    # Imported here so that the overview of commands does not wait for numpy.
    from bayplan.replay import generators  # noqa: PLC0415
    from bayplan.replay.trace import trace_lines  # noqa: PLC0415
    from bayplan.snapshot.snapshot import STDOUT, write  # noqa: PLC0415

    made = generators.generate(
        flags.name,
        seed=flags.seed,
        hours=flags.hours or DEFAULT_HOURS,
        scale=flags.scale or DEFAULT_SCALE,
        hints=flags.hints,
    )
    shown = quote_unprintable(flags.output)
    try:
        write(flags.output, trace_lines(made))
    except OSError as error:
        if isinstance(error, BrokenPipeError) or flags.output == STDOUT:
            raise
        reason = error.strerror or str(error)
        click.echo(f"{shown}: cannot be written: {reason}", err=True)
        raise Exit(FAILED) from None
    click.echo(f"{shown}: {counted(len(made.pods), 'pod')}", err=True)
