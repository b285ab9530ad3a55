"""The same stream of pods packed side by side by two scoring strategies, as text that fits a terminal.

`bayplan demo` shows it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from rich.text import Text

from bayplan.api.objects import Node
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import CPU, MEMORY
from bayplan.config.load import default_configuration
from bayplan.config.types import (
    DEFAULT_SCHEDULER_NAME,
    NodeResourcesFitArgs,
    ResourceSpec,
    SchedulerConfiguration,
    ScoringStrategy,
    ScoringStrategyType,
)
from bayplan.scheduler.cycle import Placement
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.report import ClusterUse, cluster_use
from bayplan.simulate.simulator import Simulator
from bayplan.simulate.synthetic import GPU, SMALL_POOLS, pod_shapes, synthetic_nodes, synthetic_pods

_BURSTS: Final = 5
"""In how many bursts the pods arrive: priorities matter only where pods wait."""
_RESOURCES: Final = (ResourceSpec("cpu"), ResourceSpec("memory"), ResourceSpec(GPU, 5))


class StrategyRun:
    """One strategy and its own copy of the cluster."""

    def __init__(self, strategy: ScoringStrategyType, nodes: Sequence[Node], pods: Sequence[PodInfo]) -> None:
        self.simulator = Simulator(strategy_configuration(strategy))
        self.simulator.add(ClusterObjects(nodes=list(nodes)))
        self.decisions = 0
        """How many attempts were made; a pod can take several."""
        self.last: tuple[str, str] | None = None
        """The pod placed last, and its node."""
        self._pods = pods
        self._next = 0
        self._tried: set[str] = set()

    def arrive(self, count: int) -> None:
        """Queue the next pods of the stream."""
        pods = list(self._pods[self._next : self._next + count])
        self._next += len(pods)
        self.simulator.add(ClusterObjects(pods=pods))

    def decide(self) -> bool:
        """Decide about the next pod; false when none is worth trying before others arrive."""
        decision = self.simulator.step()
        if decision is None:
            return False
        self.decisions += 1
        self._tried.add(decision.pod.uid)
        if isinstance(decision.outcome, Placement):
            self.last = (decision.pod.key, decision.outcome.node_name)
        return True

    @property
    def tried(self) -> int:
        """How many pods were tried, however often."""
        return len(self._tried)

    @property
    def queued(self) -> int:
        """How many pods have arrived and were not tried yet."""
        return self._next - self.tried

    @property
    def waiting(self) -> int:
        """How many pods that were tried have no node now: they found none, or were evicted from it."""
        nodes = self.simulator.cache.nodes
        return self.tried - int(nodes.pod_count[nodes.rows()].sum())

    @property
    def rate(self) -> float:
        """Decisions per second of deciding."""
        seconds = self.simulator.seconds
        return self.decisions / seconds if seconds > 0 else 0.0

    def use(self) -> ClusterUse:
        """How full this run's cluster is."""
        return cluster_use(self.simulator.cache.nodes)


class StrategyComparison:
    """MostAllocated against LeastAllocated on a made-up cluster; the same seed gives the same comparison."""

    def __init__(self, *, nodes: int, pods: int, seed: int) -> None:
        self.nodes = synthetic_nodes(nodes, SMALL_POOLS)
        self.pods = pods
        shapes = pod_shapes(20, seed)

        def stream() -> list[PodInfo]:
            return synthetic_pods(pods, shapes, seed=seed, scheduler_name=DEFAULT_SCHEDULER_NAME)

        self.most = StrategyRun(ScoringStrategyType.MOST_ALLOCATED, self.nodes, stream())
        self.least = StrategyRun(ScoringStrategyType.LEAST_ALLOCATED, self.nodes, stream())
        self.arrived = 0
        self.finished = False
        """Whether the stream has ended and no pod is worth trying."""
        self._burst = max(1, pods // _BURSTS)

    def advance(self, count: int) -> bool:
        """Make up to `count` decisions in both; False when the stream has ended and no pod is worth trying.

        The next burst arrives when neither has a pod worth trying, so the outcome does not depend on `count`.
        """
        for _ in range(count):
            if self._decide():
                continue
            if self.arrived == self.pods:
                self.finished = True
                break
            self.arrived = min(self.arrived + self._burst, self.pods)
            self.most.arrive(self._burst)
            self.least.arrive(self._burst)
            self._decide()
        return not self.finished

    def _decide(self) -> bool:
        # Both in any case, which `or` would not do.
        return any([self.most.decide(), self.least.decide()])


def strategy_configuration(strategy: ScoringStrategyType) -> SchedulerConfiguration:
    """The default configuration with another scoring strategy, where a GPU weighs five times a core's share.

    NodeResourcesBalancedAllocation is left at its default weight of 1.
    """
    configuration = default_configuration()
    profile = configuration.profiles[0]
    fit = NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(strategy, _RESOURCES))
    return replace(
        configuration, profiles=(replace(profile, plugin_config={**profile.plugin_config, "NodeResourcesFit": fit}),)
    )


_SHOWN: Final = ((CPU, "cpu", "cyan"), (MEMORY, "memory", "green"), (GPU, "gpu", "magenta"))
_BAR: Final = 9
_NAME: Final = 8
_CELL: Final = _NAME + len(_SHOWN) * (_BAR + 1)
_GAP: Final = 3
_FIXED_LINES: Final = 9
"""Lines of a frame that are not nodes, and one for the cursor."""
_LABEL: Final = 15


@dataclass(frozen=True, slots=True)
class Glyphs:
    """What bars are made of: whole cells, then the parts of a cell in growing order."""

    full: str
    parts: str
    empty: str


BLOCKS: Final = Glyphs("█", "▏▎▍▌▋▊▉", "·")
ASCII: Final = Glyphs("#", "", ".")


def glyphs_for(encoding: str | None) -> Glyphs:
    """Block characters where the terminal's encoding has them."""
    try:
        (BLOCKS.full + BLOCKS.parts + BLOCKS.empty).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return BLOCKS


def frame(comparison: StrategyComparison, *, width: int, height: int, glyphs: Glyphs = BLOCKS) -> Text:
    """The comparison as it stands, at most `width` columns and `height - 1` lines; at its end with the result."""
    lines = [
        *_head(comparison),
        *_nodes(comparison.most.simulator.cache.nodes, width, height, glyphs),
        *_tallies(comparison, width, glyphs),
    ]
    for line in lines:
        line.truncate(width)
    return Text("\n").join(lines)


def progress(comparison: StrategyComparison) -> str:
    """The comparison as one line."""
    most, least = comparison.most, comparison.least
    return (
        f"decided {most.tried}/{comparison.pods}  queue {most.queued}  no room {most.waiting}  "
        f"nodes in use: MostAllocated {most.use().nodes_in_use}, LeastAllocated {least.use().nodes_in_use}"
    )


def result(comparison: StrategyComparison) -> str:
    """What the comparison showed, as one line."""
    most, least = comparison.most.use(), comparison.least.use()
    lost = f"; {comparison.most.waiting} unplaced" if comparison.most.waiting else ""
    return (
        f"{comparison.pods} pods: MostAllocated {_nodes_text(most.nodes_in_use)}, "
        f"LeastAllocated {least.nodes_in_use}, lower bound {most.lower_bound_nodes}{lost}"
    )


def bar(part: int, whole: int, cells: int, glyphs: Glyphs) -> str:
    """`part` of `whole` in `cells` characters; anything above zero shows."""
    if whole <= 0:
        return " " * cells
    steps = len(glyphs.parts) + 1
    filled = min(cells * steps, max(part * cells * steps // whole, 1 if part else 0))
    full, rest = divmod(filled, steps)
    text = glyphs.full * full + (glyphs.parts[rest - 1] if rest else "")
    return text.ljust(cells, glyphs.empty)


def _head(comparison: StrategyComparison) -> list[Text]:
    most = comparison.most
    title = Text.assemble(
        ("bayplan demo", "bold"),
        f"  {len(comparison.nodes)} nodes, {comparison.pods} pods with priorities, packed by MostAllocated",
    )
    counts = Text.assemble(
        "decided ",
        (f"{most.tried}/{comparison.pods}", "bold"),
        "  queue ",
        (f"{most.queued:<3}", "bold"),
        "  no room ",
        (f"{most.waiting:<3}", "bold"),
        f"  {most.rate:,.0f} decisions/s",
    )
    return [title, counts]


def _nodes(nodes: NodeTable, width: int, height: int, glyphs: Glyphs) -> list[Text]:
    """Nodes in as many columns as fit, top to bottom."""
    columns = max(1, (width + _GAP) // (_CELL + _GAP))
    rows = nodes.rows().tolist()
    most_lines = max(1, height - _FIXED_LINES)
    columns_needed = min(columns, len(rows)) or 1
    shown = min(len(rows), columns_needed * most_lines)
    lines = -(-shown // columns_needed)
    titles = "".join(f" {title:<{_BAR}}" for _, title, _ in _SHOWN)
    lines_of_nodes = [Text((" " * _GAP).join([f"{'node':<{_NAME}}{titles}"] * columns_needed), style="dim")]
    for line in range(lines):
        cells = [_node(nodes, row, glyphs) for row in rows[line:shown:lines]]
        lines_of_nodes.append(Text(" " * _GAP).join(cells))
    hidden = f", {len(rows) - shown} of them not shown above" if shown < len(rows) else ""
    return [*lines_of_nodes, Text(f"Nodes in use, of {len(rows)}{hidden}:", style="bold")]


def _node(nodes: NodeTable, row: int, glyphs: Glyphs) -> Text:
    used = bool(nodes.pod_count[row])
    text = Text(f"{nodes.names[row][:_NAME]:<{_NAME}}", style="bold" if used else "dim")
    for resource, _, color in _SHOWN:
        offered, taken = nodes.allocatable.get(resource), nodes.requested.get(resource)
        whole = 0 if offered is None else int(offered[row])
        part = 0 if taken is None else int(taken[row])
        text.append(" ")
        text.append(bar(part, whole, _BAR, glyphs), style=color if used else "dim")
    return text


def _tallies(comparison: StrategyComparison, width: int, glyphs: Glyphs) -> list[Text]:
    most, least = comparison.most.use(), comparison.least.use()
    lines: list[Text] = []
    for label, count, color in (
        ("MostAllocated", most.nodes_in_use, "green"),
        ("LeastAllocated", least.nodes_in_use, "red"),
        ("lower bound", most.lower_bound_nodes, "blue"),
    ):
        cells = max(10, width - _LABEL - 6)
        text = bar(count, len(comparison.nodes), cells, glyphs).rstrip(glyphs.empty)
        lines.append(Text.assemble(f"{label:<{_LABEL}}", (text, color), (f" {count}", "bold")))
    if comparison.finished:
        lines.append(Text(result(comparison), style="bold"))
    elif comparison.most.last is not None:
        lines.append(Text("last: {} on {}".format(*comparison.most.last), style="dim"))
    return lines


def _nodes_text(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"
