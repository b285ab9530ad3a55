"""The scheduling cycle with extenders: the pure cycle's filters and scores, with calls between them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from bayplan.api.client import ApiClient
from bayplan.api.errors import AmbiguousError, UnreachableError
from bayplan.api.objects import Node
from bayplan.api.watch_event import read_pod
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Status
from bayplan.scheduler.api_calls import pod_path
from bayplan.scheduler.cycle import FitError, Placement, SchedulingCycle
from bayplan.scheduler.extender.client import ExtenderClient
from bayplan.scheduler.extender.preemption import with_extenders_say
from bayplan.scheduler.extender.wire import ExtenderError

logger = logging.getLogger(__name__)

PodSource = Callable[[PodInfo], Awaitable[msgspec.Raw]]
"""Gives the whole pod as JSON, with what bayplan itself does not keep: extenders go by annotations."""


class ExtendedCycle:
    """Decides for one pod with the extenders' help; the loop awaits it, so decisions stay one at a time.

    Filter calls follow each other, each with the nodes the last one left; prioritize calls run side by side. While
    they run the cluster may change: the last step looks at the nodes anew and never chooses one that no longer fits.

    Raises (from `schedule`):
        ExtenderError: an extender that is not ignorable failed, or the pod cannot be read; the text is the user's.
    """

    def __init__(
        self, cycle: SchedulingCycle, nodes: NodeTable, extenders: Sequence[ExtenderClient], pod_source: PodSource
    ) -> None:
        self._cycle = cycle
        self._nodes = nodes
        self._extenders = extenders
        self._pod_source = pod_source

    async def schedule(self, pod: PodInfo, framework: Framework) -> Placement | FitError:
        """As `SchedulingCycle.schedule`, with the interested extenders asked."""
        outcome = await self._decide(pod, framework)
        if isinstance(outcome, FitError):

            async def whole() -> msgspec.Raw:
                return await self._pod_source(pod)

            return await with_extenders_say(outcome, pod, self._extenders, self._nodes, whole)
        return outcome

    async def _decide(self, pod: PodInfo, framework: Framework) -> Placement | FitError:
        asked = [
            each
            for each in self._extenders
            if (each.spec.filter_verb or each.spec.prioritize_verb) and each.interested(pod)
        ]
        names: Sequence[str] = self._cycle.feasible_nodes(pod, framework) if asked else ()
        if not names:
            return self._cycle.schedule(pod, framework)
        whole = await self._pod_source(pod)
        names, verdicts = await self._filter(asked, pod, whole, names)
        if not names:
            return self._cycle.reject(pod, framework, verdicts)
        scores: Mapping[str, int] = {}
        if len(names) > 1:
            scores = await self._prioritize(asked, pod, whole, names)
        placement = self._cycle.choose(pod, framework, names, scores)
        if placement is None:
            raise ExtenderError("the nodes that extenders left no longer fit the pod")
        return placement

    async def _filter(
        self, asked: Sequence[ExtenderClient], pod: PodInfo, whole: msgspec.Raw, names: Sequence[str]
    ) -> tuple[Sequence[str], dict[str, Status]]:
        """The nodes all extenders leave, and their verdicts on others (upstream: findNodesThatPassExtenders)."""
        verdicts: dict[str, Status] = {}
        for extender in asked:
            if not extender.spec.filter_verb:
                continue
            nodes = self._objects(names)
            if not nodes:
                break
            try:
                answer = await extender.filter(whole, nodes)
            except ExtenderError as error:
                if not extender.spec.ignorable:
                    raise
                logger.info(
                    "extender failed and is ignored url=%r pod=%r error=%s", extender.spec.url_prefix, pod.key, error
                )
                continue
            verdicts.update(answer.verdicts)
            names = answer.names
        return names, verdicts

    async def _prioritize(
        self, asked: Sequence[ExtenderClient], pod: PodInfo, whole: msgspec.Raw, names: Sequence[str]
    ) -> dict[str, int]:
        """The sum of all extenders' scores by node; one that fails gives none (upstream: prioritizeNodes)."""
        nodes = self._objects(names)

        async def ask(extender: ExtenderClient) -> dict[str, int]:
            try:
                return await extender.prioritize(whole, nodes)
            except ExtenderError as error:
                logger.warning(
                    "extender gave no scores url=%r pod=%r error=%s", extender.spec.url_prefix, pod.key, error
                )
                return {}

        given = await asyncio.gather(*(ask(each) for each in asked if each.spec.prioritize_verb))
        return {name: sum(scores.get(name, 0) for scores in given) for name in names}

    def _objects(self, names: Sequence[str]) -> list[Node]:
        rows = (self._nodes.row(name) for name in names)
        return [node for row in rows if row is not None and (node := self._nodes.nodes[row]) is not None]


def pod_from_api(client: ApiClient) -> PodSource:
    """A source that reads the pod from the API server each time."""

    async def read(pod: PodInfo) -> msgspec.Raw:
        try:
            response = await client.request("GET", pod_path(pod.namespace, pod.name))
        except (AmbiguousError, UnreachableError) as error:
            raise ExtenderError(f"reading the pod for extenders: {error}") from error
        found = read_pod(response.body) if response.status == 200 else None
        if found is None or found.metadata.uid != pod.uid:
            raise ExtenderError(f"reading the pod for extenders: status {response.status}, or another pod of its name")
        return msgspec.Raw(response.body)

    return read
