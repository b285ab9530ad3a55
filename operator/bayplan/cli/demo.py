"""`bayplan demo`: a made-up cluster being packed, live in the terminal."""

import math
import sys
import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from bayplan.simulate.strategy_comparison import StrategyComparison

_FRAMES_PER_SECOND: Final = 20
_MAX_SECONDS: Final = 7.0
"""How long the show takes at most, unless `--speed` is given."""
_MAX_PER_FRAME: Final = 200
_PROGRESS_LINES: Final = 10


def _a_number(speed: float | None) -> float | None:
    # NaN is neither below the least nor above the most.
    if speed is not None and math.isnan(speed):
        raise typer.BadParameter("nan is not a number")
    return speed


def demo(
    nodes: Annotated[int, typer.Option("--nodes", min=1, max=5000, help="Size of the cluster.")] = 30,
    pods: Annotated[int, typer.Option("--pods", min=1, max=100_000, help="Length of the pod stream.")] = 100,
    seed: Annotated[int, typer.Option("--seed", help="Another seed, another stream.")] = 3,
    speed: Annotated[
        float | None,
        typer.Option(
            "--speed",
            min=0.1,
            max=1_000_000,
            callback=_a_number,
            help="Decisions per second; by default done within seconds.",
        ),
    ] = None,
    live: Annotated[bool, typer.Option("--live/--no-live", help="Draw in place, or print progress lines.")] = True,
) -> None:
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
        typer.echo(progress(comparison))
    console = Console(highlight=False)
    picture = frame(
        comparison, width=console.width, height=len(comparison.nodes) + 20, glyphs=glyphs_for(sys.stdout.encoding)
    )
    typer.echo("\n" + "\n".join(line.rstrip() for line in picture.plain.splitlines()))
