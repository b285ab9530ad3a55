"""`bayplan replay`: what a configuration costs over a day of pods that come and go."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.exceptions import Exit

from bayplan.cli import FAILED, tell_line
from bayplan.cli.flags import check_standard_input, command
from bayplan.cli.process import progress_bar
from bayplan.cli.trace import DEFAULT_HOURS, DEFAULT_SCALE, HINTS, HOURS, SCALE
from bayplan.config.errors import InputError, quote
from bayplan.config.flags import FILE_TEXT, flag, seconds

if TYPE_CHECKING:
    from bayplan.config.types import SchedulerConfiguration
    from bayplan.replay.outcome import Outcome
    from bayplan.replay.runs import Run

_DEFAULT: Final = "bayplan's default"


@dataclass(frozen=True, kw_only=True)
class _Flags:
    trace: str = flag(
        "TRACE",
        "A file of JSON lines, also compressed by gzip, or ci-fleet, openb or openb-cpu.",
        type=FILE_TEXT,
    )
    config: Sequence[Path] = flag(
        "--config FILE",
        "KubeSchedulerConfiguration or legacy Policy; - is standard input; without it one profile, MostAllocated. "
        "Several are compared.",
        default=(),
    )
    pool: str = flag(
        "--pool fixed|autoscaled",
        "Whether there are always as many nodes as the trace counts, or as many as pods need.",
        default="autoscaled",
    )
    scale_down_after: float = flag(
        "--scale-down-after DURATION",
        "How long a node is empty before it goes; 10m by default.",
        default=600.0,
        read=seconds,
    )
    provision: float = flag(
        "--provision DURATION",
        "How long a new node takes until it is ready; 60s by default.",
        default=60.0,
        read=seconds,
    )
    seeds: int | None = flag(
        "--seeds INT",
        "Of a made-up trace: how many of them, of which means are shown; 1 by default.",
        type=click.IntRange(1, 1000),
    )
    hours: float | None = HOURS()
    scale: float | None = SCALE()
    hints: float | None = HINTS()
    results: Path | None = flag(
        "--results FILE", "Where each result is added as a line of JSON; what is there is not run again."
    )
    plot: Path | None = flag("--plot FILE", "Where to draw nodes over time, of the first seed: .svg, .png or .html.")
    dask: str | None = flag(
        "--dask ADDRESS", "The scheduler of a Dask cluster, such as tcp://10.0.0.1:8786, whose workers replay."
    )
    output: str = flag("--output -o text|json", "For people, or for programs.", default="text")

    def __post_init__(self) -> None:
        """Refuse standard input for two files."""
        check_standard_input(config=self.config)


@command(
    examples=(
        "bayplan replay ci-fleet --scale 0.1 --config examples/most-allocated.yaml --config now.yaml",
        "bayplan replay openb --hours 48 --scale 0.05 --seeds 10 --results results.jsonl",
        "bayplan replay trace.jsonl.gz --scale-down-after 5m --plot nodes.svg",
        "bayplan replay ci-fleet --seeds 20 --results results.jsonl --dask tcp://10.0.0.1:8786",
    ),
)
def replay(flags: _Flags) -> None:
    """Replay a day of pods that come and go, and say what nodes cost with each configuration.

    The real engine decides, in virtual time. Nodes are made for pods that find none and go when they are empty, as an
    autoscaler does it, unless --pool fixed. What is paid for is compared with what pods ask for, and with a bound that
    no packing can go below.
    """
    from bayplan.cli import nothing_collected  # noqa: PLC0415
    from bayplan.replay.generators import GENERATORS  # noqa: PLC0415
    from bayplan.replay.outcome import print_summary, replayed  # noqa: PLC0415
    from bayplan.replay.plot import check_drawable, draw  # noqa: PLC0415
    from bayplan.replay.runs import keep_result, results_in  # noqa: PLC0415
    from bayplan.simulate.report import encode  # noqa: PLC0415
    from bayplan.simulate.tables import Printer  # noqa: PLC0415

    if flags.trace not in GENERATORS and (flags.seeds, flags.hours, flags.scale, flags.hints) != (
        None,
        None,
        None,
        None,
    ):
        raise click.UsageError(
            f"--seeds, --hours, --scale and --hints are about made-up traces: {', '.join(GENERATORS)}"
        )
    if flags.plot is not None and str(flags.plot) in {flags.trace, str(flags.results)}:
        raise click.UsageError(f"--plot: {flags.plot} is read or written as another file")
    if flags.plot is not None:
        check_drawable(flags.plot)
    with nothing_collected():
        runs, configurations = _runs(flags)
    done = {} if flags.results is None else results_in(flags.results)
    for path in filter(None, (flags.results, flags.plot)):
        # What cannot be written is told before hours are spent on it.
        path.open("ab").close()
    missing = [
        each for key, each in {each.key: each for some in runs.values() for each in some}.items() if key not in done
    ]
    for run, outcome in _replayed(missing, configurations, flags.dask):
        done[run.key] = outcome
        if flags.results is not None:
            keep_result(flags.results, run, outcome)
    named = {name: [done[each.key] for each in some] for name, some in runs.items()}
    results = [replayed(name, each) for name, each in named.items()]
    if flags.output == "json":
        sys.stdout.write(encode({"configurations": results}).decode())
    else:
        print_summary(Printer(sys.stdout), results)
    if flags.plot is not None:
        draw(flags.plot, [(name, each[0]) for name, each in named.items()])


def _runs(flags: _Flags) -> "tuple[dict[str, list[Run]], dict[str, SchedulerConfiguration]]":
    """Return what is to be run with each file, seed by seed, and the configurations by their digests."""
    from bayplan.cli.simulation_input import configured  # noqa: PLC0415
    from bayplan.replay.pools import Pools  # noqa: PLC0415
    from bayplan.replay.replay import PoolSettings  # noqa: PLC0415
    from bayplan.replay.runs import Run, digest_of, sources  # noqa: PLC0415

    each_configured = [configured(each, None, ()) for each in flags.config or (None,)]
    for line in dict.fromkeys(line for each in each_configured for line in each.lines()):
        click.echo(line, err=True)
    named = {str(each.file or _DEFAULT): digest_of(each.configuration) for each in each_configured}
    autoscaled = PoolSettings(True, flags.scale_down_after, flags.provision)
    settings = PoolSettings(autoscaled=False) if flags.pool == "fixed" else autoscaled
    given = sources(
        flags.trace,
        seeds=flags.seeds or 1,
        hours=flags.hours or DEFAULT_HOURS,
        scale=flags.scale or DEFAULT_SCALE,
        hints=flags.hints,
    )
    for name in Pools(given[0].trace).that_fit_nowhere():
        click.echo(f"no node of any pool holds a pod of {quote(name)}: none of them gets a node", err=True)
    if flags.pool == "fixed" and not any(pool.count for pool in given[0].trace.header.pools):
        raise InputError("--pool: no pool of the trace has a count of nodes")
    runs = {name: [Run(source, digest, settings) for source in given] for name, digest in named.items()}
    return runs, {digest_of(each.configuration): each.configuration for each in each_configured}


def _replayed(
    runs: "Sequence[Run]", configurations: "Mapping[str, SchedulerConfiguration]", address: str | None
) -> "Iterator[tuple[Run, Outcome]]":
    """Yield what is done, by processes or by the cluster at an address; on a terminal a bar shows how much that is."""
    if address is None:
        from bayplan.replay.runs import WorkerDiedError, outcomes  # noqa: PLC0415

        try:
            yield from _told(outcomes(runs, configurations), len(runs))
        except WorkerDiedError as error:
            tell_line(f"bayplan: {error}")
            raise Exit(FAILED) from None
        return
    try:
        from bayplan.replay.dask_cluster import ClusterError, outcomes_on  # noqa: PLC0415 - an extra
    except ImportError:
        raise InputError("--dask: needs the package distributed: pip install 'bayplan[dask]'") from None
    if not runs:
        return
    try:
        yield from _told(outcomes_on(address, runs, configurations), len(runs))
    except ClusterError as error:
        tell_line(f"--dask: {error}")
        raise Exit(FAILED) from None


def _told(done: "Iterator[tuple[Run, Outcome]]", total: int) -> "Iterator[tuple[Run, Outcome]]":
    if not sys.stderr.isatty() or not total:
        yield from done
        return
    with progress_bar("Replaying", auto_refresh=True) as bar:
        yield from bar.track(done, total=total)
