"""Decides beside another scheduler, in memory alone: what it would choose, and what its choices would have saved."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

import numpy as np
from msgspec import structs

from bayplan.api.object_store import Handler
from bayplan.api.objects import Node, Pod, PodStatus
from bayplan.api.quantity import QuantityError
from bayplan.cache.cache import Cache
from bayplan.cache.pod_info import PodInfo
from bayplan.config.errors import ConfigurationError, forbidden
from bayplan.config.types import PluginEntry, PluginSet, SchedulerConfiguration
from bayplan.framework.nominator import Nominator
from bayplan.metrics.table import Metrics
from bayplan.scheduler.api_calls import shown_condition
from bayplan.scheduler.attempt import UNSCHEDULABLE
from bayplan.scheduler.decision import Decision, FitError
from bayplan.scheduler.engines import Engine

logger = logging.getLogger(__name__)

OUTCOMES: Final = ("same", "tie", "another", "only_theirs", "only_ours", "neither")
"""How a decision of the other scheduler compares with ours on the same state, as labels of a metric."""
REAL: Final = "real"
SHADOW: Final = "shadow"
"""The two worlds, as labels: where pods are, and where they would be by our choices."""

_MEASURE_SECONDS: Final = 1.0
_RELEASE_EVERY: Final = 10
_TELL_EVERY: Final = 300


def shadow_configuration(configuration: SchedulerConfiguration, names: Collection[str]) -> SchedulerConfiguration:
    """Return the configuration by which pods of the schedulers `names` are decided: each by the profile of its name.

    A name without a profile gets the first one. There is no preemption, no election and no comparison of the cache.

    Raises:
        ConfigurationError: it has extenders, which may have effects.
    """
    if configuration.extenders:
        raise ConfigurationError([forbidden("extenders", "a shadow asks none, so it would decide otherwise")])
    known = {each.scheduler_name: each for each in configuration.profiles}
    nothing = PluginSet(disabled=(PluginEntry("*"),))
    profiles = [known.get(name, configuration.profiles[0]) for name in names]
    return replace(
        configuration,
        leader_election=replace(configuration.leader_election, leader_elect=False),
        enable_profiling=False,
        profiles=tuple(
            replace(each, scheduler_name=name, plugins=replace(each.plugins, post_filter=nothing))
            for name, each in zip(names, profiles, strict=True)
        ),
    )


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """Nodes with the pods on them, and an engine that decides on these."""

    cache: Cache
    engine: Engine

    def decide(self, pod: PodInfo) -> Decision:
        """Return what would be done with the pod; nothing changes."""
        return self.engine.cycle.schedule(pod, self.engine.frameworks[pod.pod.spec.scheduler_name])

    def release_unused(self) -> None:
        """Let go of what no decision needed since the last call."""
        self.engine.cycle.release_unused()
        for framework in self.engine.frameworks.values():
            framework.release_unused()

    def nodes_in_use(self) -> int:
        """How many nodes have a pod that could run elsewhere."""
        return int(np.count_nonzero(self.cache.nodes.in_use()))


@dataclass(eq=False)
class Shadow(Handler[Pod]):
    """Takes each bind of another scheduler as a question, and answers it in two worlds, which it keeps.

    In the `real` world pods are where they are: there our choice is compared with the other's, on the state as it stood
    before the bind. In the `shadow` world they are where we would have put them, from the bind until they end: there
    nodes are counted. Both run the same pods at any time. Pods that run when it begins, those of DaemonSets and those
    of schedulers that it is not about are where they are in both; so are pods for which the shadow world has no node
    (`no_node`), and those whose node there goes (`node_gone`). `nominator` is the real world's; `clock` in seconds.

    It is the handler of a watch of all pods that have not ended. The process has it begin once all kinds are known.
    """

    real: World
    shadow: World
    nominator: Nominator
    metrics: Metrics
    clock: Callable[[], float] = time.monotonic
    decisions: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0), init=False)
    returned: dict[str, int] = field(default_factory=lambda: {"no_node": 0, "node_gone": 0}, init=False)
    node_seconds: dict[str, float] = field(default_factory=lambda: {REAL: 0.0, SHADOW: 0.0}, init=False)
    _refused: set[str] = field(default_factory=set, init=False)
    """The pods that wait and of which the other said that they fit nowhere."""
    _began: float | None = field(default=None, init=False)
    _measured: float = field(default=0.0, init=False)

    async def run(self) -> None:
        """Decide from now on, measure every second, and tell every five minutes; for ever."""
        self.begin()
        for tick in count(1):
            await asyncio.sleep(_MEASURE_SECONDS)
            self.measure()
            if tick % _RELEASE_EVERY == 0:
                self.real.release_unused()
                self.shadow.release_unused()
            if tick % _TELL_EVERY == 0:
                self.tell()

    def problem(self) -> str | None:
        """Why binds are not compared, in constant words; None while they are."""
        return "it has not begun" if self._began is None else None

    def begin(self) -> None:
        """Take what is bound from now on for a decision of the other's."""
        self._began = self._measured = self.clock()

    def measure(self) -> None:
        """Have the nodes in use count for the time since the last call."""
        now = self.clock()
        for world, nodes in self.nodes_in_use().items():
            self.node_seconds[world] += (now - self._measured) * nodes
        self._measured = now

    def nodes_in_use(self) -> dict[str, int]:
        """How many nodes are in use now, by the labels of worlds."""
        return {REAL: self.real.nodes_in_use(), SHADOW: self.shadow.nodes_in_use()}

    def tell(self) -> None:
        """Write what was found until the last measurement to the log, as one line."""
        hours = {world: seconds / 3600 for world, seconds in self.node_seconds.items()}
        logger.info(
            "what a shadow found hours=%.2f same=%d tie=%d another=%d only_theirs=%d only_ours=%d neither=%d"
            " nodes_in_use=%d shadow_nodes_in_use=%d node_hours=%.2f shadow_node_hours=%.2f saved=%.1f%%"
            " returned_no_node=%d returned_node_gone=%d",
            0.0 if self._began is None else (self._measured - self._began) / 3600,
            *self.decisions.values(),
            *self.nodes_in_use().values(),
            *hours.values(),
            100 * (1 - hours[SHADOW] / hours[REAL]) if hours[REAL] else 0.0,
            *self.returned.values(),
        )

    def on_add(self, pod: Pod) -> None:
        """A pod appeared with a node or without, changed, or was bound."""
        info = PodInfo(pod)
        try:
            _ = info.requests, info.placed
        except ValueError as error:
            # QuantityError; an earlier version of it stays where it is.
            logger.warning("pod not counted pod=%r error=%s", info.key, error)
            self.metrics.undecodable_objects.add("Pod")
            return
        if not pod.spec.node_name:
            self._waits(info)
            return
        self._refused.discard(info.uid)
        self.nominator.delete(info.uid)
        node_name = self.shadow.cache.node_of(info.uid) or self._bound(info)
        self.real.cache.set_pod(info)
        self.shadow.cache.set_pod(_moved(info, node_name))

    def on_delete(self, pod: Pod) -> None:
        """A pod ended."""
        uid = pod.metadata.uid
        self._refused.discard(uid)
        self.nominator.delete(uid)
        self.real.cache.remove_pod(uid)
        self.shadow.cache.remove_pod(uid)

    def _bound(self, info: PodInfo) -> str:
        """Compare, and return the node that we would have chosen in the shadow world."""
        node_name = info.pod.spec.node_name
        if not self._decides(info) or info.stays:
            return node_name
        asked = _waiting(info)
        try:
            self.decisions[_agreement(self.real.decide(asked), node_name)] += 1
            outcome = self.shadow.decide(asked).outcome
        except Exception:
            logger.exception("a pod was not decided pod=%r", info.key)
            return node_name
        if isinstance(outcome, FitError):
            self.returned["no_node"] += 1
            return node_name
        return outcome.node_name

    def _waits(self, info: PodInfo) -> None:
        """Keep the room that the other keeps, and compare when it says first that the pod fits nowhere."""
        uid, nominated = info.uid, info.pod.status.nominated_node_name
        if nominated:
            self.nominator.add(info, nominated)
        else:
            self.nominator.delete(uid)
        if uid in self._refused or not self._decides(info) or not _is_refused(info):
            return
        self._refused.add(uid)
        outcome = self.real.decide(_waiting(info)).outcome
        self.decisions["neither" if isinstance(outcome, FitError) else "only_ours"] += 1

    def _decides(self, info: PodInfo) -> bool:
        return self._began is not None and info.pod.spec.scheduler_name in self.real.engine.frameworks


@dataclass(frozen=True, slots=True, eq=False)
class ShadowNodes(Handler[Node]):
    """Keeps the nodes of both worlds; the handler of their watch."""

    shadow: Shadow

    def on_add(self, node: Node) -> None:
        """A node appeared, or changed."""
        try:
            for world in (self.shadow.real, self.shadow.shadow):
                world.cache.set_node(node)
        except QuantityError as error:
            logger.warning("node left out node=%r error=%s", node.metadata.name, error)
            self.shadow.metrics.undecodable_objects.add("Node")
            self.on_delete(node)

    def on_delete(self, node: Node) -> None:
        """A node went away: pods that are there in the shadow world alone go where they are."""
        name = node.metadata.name
        real, shadow = self.shadow.real.cache, self.shadow.shadow.cache
        row = shadow.nodes.row(name)
        pods = [] if row is None else [*shadow.nodes.pods[row]]
        real.remove_node(name)
        shadow.remove_node(name)
        for uid in pods:
            pod = real.pod(uid)
            if pod is not None and pod.pod.spec.node_name != name:
                self.shadow.returned["node_gone"] += 1
                shadow.set_pod(pod)


def _agreement(decision: Decision, node_name: str) -> str:
    """How our choice compares with that of a node."""
    outcome, totals = decision.outcome, decision.totals
    if isinstance(outcome, FitError):
        return "only_theirs"
    if outcome.node_name == node_name:
        return "same"
    row = decision.nodes.row(node_name)
    if row is None or totals is None:
        return "another"
    scores = totals[row : row + 1] if decision.rows is None else totals[decision.rows == row]
    return "tie" if outcome.score in scores.tolist() else "another"


def _is_refused(info: PodInfo) -> bool:
    shown = shown_condition(info)
    return shown is not None and shown[0] == UNSCHEDULABLE


def _waiting(info: PodInfo) -> PodInfo:
    """Return the pod as it was before it was bound; the node it was nominated to would give the answer away."""
    spec = structs.replace(info.pod.spec, node_name="")
    return PodInfo(structs.replace(info.pod, spec=spec, status=PodStatus(phase="Pending")))


def _moved(info: PodInfo, node_name: str) -> PodInfo:
    """Return the pod as it is on that node."""
    spec = info.pod.spec
    if spec.node_name == node_name:
        return info
    return PodInfo(structs.replace(info.pod, spec=structs.replace(spec, node_name=node_name)))
