"""`bayplan trace`: makes traces for `bayplan replay`."""

import asyncio
import secrets
import signal
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from bayplan.cli.flags import OUTPUT_FILE, a_number, command
from bayplan.cli.help_sections import CommandGroup
from bayplan.cli.process import answer_or_end
from bayplan.cli.snapshot import written
from bayplan.config.flags import CONTEXT, KUBECONFIG, MASTER, duration, flag
from bayplan.shown_text import counted

if TYPE_CHECKING:
    from bayplan.replay.recording import Recording
    from bayplan.replay.trace import Trace

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
    name: str = flag("ci-fleet|openb|openb-cpu", "Which cluster it is like.")
    output: str = OUTPUT_FILE()
    seed: int = flag("--seed INT", "Another seed, another trace.", default=1, type=click.IntRange(0))
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

    ci-fleet is like a CI system of thousands of jobs an hour on nodes of 19 kinds; openb is like a cluster with GPUs,
    and openb-cpu the same without them, on nodes of one size.
    """
    from bayplan.replay import generators  # noqa: PLC0415

    made = generators.generate(
        flags.name,
        seed=flags.seed,
        hours=flags.hours or DEFAULT_HOURS,
        scale=flags.scale or DEFAULT_SCALE,
        hints=flags.hints,
    )
    shown = _write(flags.output, made)
    click.echo(f"{shown}: {counted(len(made.pods), 'pod')}", err=True)


def _write(output: str, made: "Trace") -> str:
    from bayplan.replay.trace import trace_lines  # noqa: PLC0415

    return written(output, trace_lines(made))


@dataclass(frozen=True, kw_only=True)
class _RecordFlags:
    output: str = OUTPUT_FILE()
    duration: timedelta | None = flag(
        "--duration DURATION",
        'How long, such as "24h"; until Ctrl-C without it.',
        read=partial(duration, least=timedelta(seconds=1)),
    )
    redact: bool = flag(
        "--redact", "Replace labels, taints and types of nodes by hashes; what fits where stays the same."
    )
    kubeconfig: Path | None = KUBECONFIG()
    context: str | None = CONTEXT()
    master: str | None = MASTER()


@command(
    parent=trace,
    short_help="Write what pods and nodes do in a live cluster to a file.",
    examples=(
        "bayplan trace record --duration 24h -o day.jsonl.gz",
        "bayplan trace record --context test --redact -o trace.jsonl",
    ),
)
def record(flags: _RecordFlags) -> None:
    """Write what pods and nodes do in a live cluster to a file, as a trace for replay.

    Nodes and pods are watched and nothing is written to the cluster. The file is whole at any time: it is there as
    soon as the recording begins, and is written anew every minute and when Ctrl-C or SIGTERM ends the recording. No
    name of a pod, a namespace or a node is in it.

    Exit codes: 0 success, 1 the cluster cannot be read or the file not be written, 2 wrong input.
    """
    from bayplan.replay.recording import Recording  # noqa: PLC0415
    from bayplan.snapshot.redaction import redacted  # noqa: PLC0415

    recording, key = Recording(), secrets.token_bytes(32)

    def recorded() -> "Trace":
        return redacted(recording.trace(), key) if flags.redact else recording.trace()

    async def ended() -> "Trace":
        await _record(flags, recording, lambda: _write(flags.output, recorded()))
        return recorded()

    made: Trace = answer_or_end(ended())
    shown = _write(flags.output, made)
    told = f"{counted(len(made.pods), 'pod')}, {counted(len(made.header.pools), 'pool')}"
    click.echo(f"{shown}: {told}, {made.header.seconds:g} seconds", err=True)
    for rule, count in recording.left_out.items():
        click.echo(f"left out: {rule}: {counted(count, 'pod')}", err=True)


async def _record(flags: _RecordFlags, recording: "Recording", save: Callable[[], object]) -> None:
    from bayplan.api.credentials import load_credentials  # noqa: PLC0415
    from bayplan.client.errors import reached  # noqa: PLC0415
    from bayplan.replay.recording import record  # noqa: PLC0415
    from bayplan.snapshot.snapshot import STDOUT  # noqa: PLC0415

    credentials = load_credentials(flags.kubeconfig, flags.context, master=flags.master)
    await reached(credentials)
    stop = asyncio.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    await record(
        recording,
        credentials,
        stop,
        seconds=None if flags.duration is None else flags.duration.total_seconds(),
        save=(lambda: None) if flags.output == STDOUT else save,
    )
