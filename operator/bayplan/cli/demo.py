"""`bayplan demo`: pods come to a made-up cluster and go, packed and spread side by side."""

import asyncio
import os
import shlex
import shutil
import sys
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.exceptions import Exit

from bayplan.cli import FAILED, INTERRUPTED
from bayplan.cli.flags import a_number, command
from bayplan.config.flags import flag

if TYPE_CHECKING:
    from bayplan.simulate.strategy_comparison import StrategyComparison

_FRAMES_PER_SECOND: Final = 20
_MAX_SECONDS: Final = 7.0
"""How long the show takes at most, unless `--speed` is given, but for the time that it holds."""
_HOLD_SECONDS: Final = 1.5
"""So long the end of a stage is to be seen."""
_RECENT: Final = 40
_PRINTED_LINES: Final = 50
"""Lines of a picture that is printed."""

_OWN_CLUSTER: Final = (
    "kubectl get nodes,pods -A -o json | {} simulate --cluster - --repack --scheduler-name default-scheduler"
)


@dataclass(frozen=True, kw_only=True)
class _Flags:
    nodes: int = flag("--nodes INT", "Size of the cluster.", default=30, type=click.IntRange(1, 5000))
    pods: int = flag("--pods INT", "How many pods come.", default=160, type=click.IntRange(1, 100_000))
    seed: int = flag("--seed INT", "Another seed, another stream.", default=3)
    speed: float | None = flag(
        "--speed FLOAT",
        "Pods that come or go per second; by default done within seconds.",
        type=click.FloatRange(0.1, 1_000_000),
        callback=a_number,
    )
    live: bool = flag("--live/--no-live", "Draw in place, or print a line for each thing that happens.", default=True)
    web: bool = flag("--web", "Show the packed cluster, once it is full, on the page of bayplan web instead.")
    browser: bool | None = flag(
        "--browser/--no-browser", "With --web: open the page in a browser, which is the default."
    )


@command(
    examples=("bayplan demo", "bayplan demo --nodes 100 --pods 2000 --speed 400", "bayplan demo --web"),
)
def demo(flags: _Flags) -> None:
    """Watch a made-up cluster being packed, and the same pods being spread, by the real engine.

    Pods come and go, with priorities and GPUs; then urgent ones come that evict others, and half of all pods depart.
    MostAllocated packs them, and LeastAllocated, which is kube-scheduler's default, spreads them. Each decision is told
    with its reason. No cluster and no configuration is needed.
    """
    if flags.browser is not None and not flags.web:
        raise click.UsageError("--browser and --no-browser are about --web")
    try:
        from rich.console import Console  # noqa: PLC0415

        from bayplan.simulate.strategy_comparison import StrategyComparison  # noqa: PLC0415

        comparison = StrategyComparison(nodes=flags.nodes, pods=flags.pods, seed=flags.seed)
        if flags.web:
            _open_page(comparison, browser=flags.browser is not False)
            return
        if flags.live and sys.stdout.isatty() and not Console().is_dumb_terminal:
            _draw(comparison, flags.speed)
        else:
            _print(comparison)
        click.echo(f"\nHow many nodes your own cluster would need:\n{_OWN_CLUSTER.format(_command())}")
    except KeyboardInterrupt:
        click.echo("bayplan demo: interrupted", err=True)
        raise Exit(INTERRUPTED) from None


def _open_page(comparison: "StrategyComparison", *, browser: bool) -> None:
    """Serve the page until Ctrl-C, on this machine alone; opened in a browser if that is wanted and there is one."""
    from bayplan.web.serve import loopback_socket, opener, serve  # noqa: PLC0415
    from bayplan.web.sources import SnapshotSource  # noqa: PLC0415

    configuration, objects = comparison.filled_and_packed()
    source = SnapshotSource(configuration, objects, name="bayplan demo")
    try:
        listening = loopback_socket(0)
    except OSError as error:
        click.echo(f"bayplan demo: 127.0.0.1: {os.strerror(error.errno or 0)}", err=True)
        raise Exit(FAILED) from None
    with listening, opener("bayplan demo", browser=browser) as opened:
        asyncio.run(serve(source, source.inspector, listening, opened))


def _command() -> str:
    """What a shell here calls bayplan by: `make demo` runs it without having it on the path."""
    beside = Path(sys.executable).with_name("bayplan")
    if shutil.which("bayplan") or not beside.exists():
        return "bayplan"
    here = Path.cwd()
    return shlex.quote(str(beside.relative_to(here) if beside.is_relative_to(here) else beside))


def _draw(comparison: "StrategyComparison", speed: float | None) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.live import Live  # noqa: PLC0415

    from bayplan.simulate.demo_frame import frame, glyphs_for, wrapped  # noqa: PLC0415

    console = Console(highlight=False)
    glyphs = glyphs_for(console.encoding)
    rate = speed or max(comparison.scene.events / _MAX_SECONDS, 25.0)
    recent: deque[str] = deque(maxlen=_RECENT)
    with Live(console=console, auto_refresh=False) as live:

        def show() -> float:
            # One line is the cursor's.
            picture = frame(comparison, width=console.width, height=console.height - 1, glyphs=glyphs, events=recent)
            live.update(picture, refresh=True)
            return time.monotonic()

        for stage in comparison.scene.stages:
            started, shown = time.monotonic(), 0.0
            for number, lines in enumerate(comparison.play(stage), 1):
                recent.extend(lines)
                # A slow machine skips frames.
                if time.monotonic() - shown >= 1 / _FRAMES_PER_SECOND:
                    shown = show()
                ahead = started + number / rate - time.monotonic()
                if ahead > 0:
                    time.sleep(ahead)
            show()
            if speed is None and not comparison.finished:
                time.sleep(_HOLD_SECONDS)
        recent.clear()
        show()
    for run in comparison.runs:
        for line in wrapped(run.last_eviction or "", console.width):
            click.echo(line)


def _print(comparison: "StrategyComparison") -> None:
    from bayplan.simulate.demo_frame import frame, glyphs_for, wrapped  # noqa: PLC0415

    width = shutil.get_terminal_size().columns
    glyphs = glyphs_for(sys.stdout.encoding)
    for stage in comparison.scene.stages:
        for lines in comparison.play(stage):
            for line in lines:
                click.echo("\n".join(wrapped(line, width)))
        picture = frame(comparison, width=width, height=_PRINTED_LINES, glyphs=glyphs)
        text = "\n".join(line.rstrip() for line in picture.plain.splitlines())
        click.echo(f"\n-- {stage.title} --\n{text}\n")
