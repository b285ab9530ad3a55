"""`bayplan demo`: a made-up cluster being packed, live in the terminal."""

import math
import sys
import time
from typing import TYPE_CHECKING, Final

import click

from bayplan.cli.help_sections import Command

if TYPE_CHECKING:
    from bayplan.simulate.strategy_comparison import StrategyComparison

_FRAMES_PER_SECOND: Final = 20
_MAX_SECONDS: Final = 7.0
"""How long the show takes at most, unless `--speed` is given."""
_MAX_PER_FRAME: Final = 200
_PROGRESS_LINES: Final = 10


def _a_number(_context: click.Context, _option: click.Parameter, speed: float | None) -> float | None:
    # NaN is neither below the least nor above the most.
    if speed is not None and math.isnan(speed):
        raise click.BadParameter("nan is not a number")
    return speed


@click.command("demo", cls=Command, examples=("bayplan demo", "bayplan demo --nodes 100 --pods 2000 --speed 400"))
@click.option("--nodes", type=click.IntRange(1, 5000), default=30, metavar="INT", help="Size of the cluster.")
@click.option("--pods", type=click.IntRange(1, 100_000), default=100, metavar="INT", help="Length of the pod stream.")
@click.option("--seed", type=int, default=3, metavar="INT", help="Another seed, another stream.")
@click.option(
    "--speed",
    type=click.FloatRange(0.1, 1_000_000),
    callback=_a_number,
    metavar="FLOAT",
    help="Decisions per second; by default done within seconds.",
)
@click.option("--live/--no-live", default=True, help="Draw in place, or print progress lines.")
def demo(*, nodes: int, pods: int, seed: int, speed: float | None, live: bool) -> None:
    """Watch a made-up cluster being packed, by the real engine.

    The same stream of pods, with priorities and GPUs, is scheduled twice: by MostAllocated, which packs, and by
    LeastAllocated, which is kube-scheduler's default and spreads. No cluster and no configuration is needed.
    """
    # Imported here so that the overview of commands does not wait for numpy.
    from bayplan.simulate.strategy_comparison import StrategyComparison  # noqa: PLC0415

    comparison = StrategyComparison(nodes=nodes, pods=pods, seed=seed)
    if live and sys.stdout.isatty():
        _draw(comparison, speed if speed is not None else max(pods / _MAX_SECONDS, 25.0))
    else:
        _print(comparison)


def _draw(comparison: "StrategyComparison", pods_per_second: float) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.live import Live  # noqa: PLC0415

    from bayplan.simulate.strategy_comparison import frame, glyphs_for  # noqa: PLC0415

    console = Console(highlight=False)
    glyphs = glyphs_for(console.encoding)
    started = time.monotonic()
    decided = 0
    with Live(console=console, auto_refresh=False) as live:
        more = True
        while more:
            # As many as are due by now: a slow machine skips frames and still ends in time.
            due = min(int((time.monotonic() - started) * pods_per_second) + 1 - decided, _MAX_PER_FRAME)
            if due > 0:
                more = comparison.advance(due)
                decided += due
                live.update(frame(comparison, width=console.width, height=console.height, glyphs=glyphs), refresh=True)
            if more:
                time.sleep(1 / _FRAMES_PER_SECOND)


def _print(comparison: "StrategyComparison") -> None:
    from rich.console import Console  # noqa: PLC0415

    from bayplan.simulate.strategy_comparison import frame, glyphs_for, progress  # noqa: PLC0415

    while comparison.advance(max(1, comparison.pods // _PROGRESS_LINES)):
        click.echo(progress(comparison))
    console = Console(highlight=False)
    picture = frame(
        comparison, width=console.width, height=len(comparison.nodes) + 20, glyphs=glyphs_for(sys.stdout.encoding)
    )
    click.echo("\n" + "\n".join(line.rstrip() for line in picture.plain.splitlines()))
