"""Answers every question about the running scheduler."""

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, TypeVar

import msgspec

from bayplan import __version__
from bayplan.api.live_paths import RefusedQuestionError
from bayplan.api.meta_objects import format_time
from bayplan.cache.cache import Cache
from bayplan.cache.node_table import NodeTable
from bayplan.config.types import SchedulerConfiguration
from bayplan.framework.runtime import Framework
from bayplan.live.answers import DecisionsAnswer, QueueCounts, SummaryAnswer
from bayplan.live.cluster_view import (
    ClusterCopy,
    WaitingPodsCopy,
    node_answer,
    nodes_answer,
    packing_answers,
    profile_answers,
)
from bayplan.live.explanation import decision_item, explanation_answer, find
from bayplan.live.simulation import ReadClasses, simulation_answer
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.recent_decisions import RecentDecisions

MOST_WAITING: Final = 8
"""So many questions wait for their turn, or are worked out; each one more is told to come again."""
ANSWER_SECONDS: Final = 45.0
"""How long anybody waits for an answer, once it is his turn."""
_RETRY_SECONDS: Final = 1

T = TypeVar("T")


class AnswerThread:
    """Gives each question its turn on a thread; the Inspector relies on it.

    What a question needs is copied when its turn has come, so no more than one copy is held. A thread cannot be
    stopped: who gives up waiting leaves it to end, and only then is it the next one's turn.
    """

    def __init__(self, *, most_waiting: int = MOST_WAITING, seconds: float = ANSWER_SECONDS) -> None:
        self._most_waiting = most_waiting
        self._seconds = seconds
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="answers")
        self._turn = asyncio.Semaphore(1)
        self._waiting = 0

    async def answer(self, copy: Callable[[], T], work: Callable[[T], bytes]) -> bytes:
        """Return what `work` makes, on the thread, of what `copy` gave, on the loop.

        Raises:
            RefusedQuestionError: too many wait (429), or it takes too long (503).
        """
        if self._waiting >= self._most_waiting:
            text = f"{self._most_waiting} questions are being worked out or wait already"
            raise RefusedQuestionError(HTTPStatus.TOO_MANY_REQUESTS, text, _RETRY_SECONDS)
        self._waiting += 1
        try:
            await self._turn.acquire()
            try:
                copied = copy()
                made = asyncio.get_running_loop().run_in_executor(self._executor, work, copied)
            except BaseException:
                self._turn.release()
                raise
            made.add_done_callback(self._ended)
            del copied
            try:
                async with asyncio.timeout(self._seconds):
                    return await asyncio.shield(made)
            except TimeoutError:
                text = f"it takes longer than {self._seconds:g} s to work out"
                raise RefusedQuestionError(HTTPStatus.SERVICE_UNAVAILABLE, text) from None
        finally:
            self._waiting -= 1

    def stop(self) -> None:
        """Begin no other answer; one under way ends with the process."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _ended(self, made: "asyncio.Future[bytes]") -> None:
        self._turn.release()
        if not made.cancelled():
            # Nobody may be left to be told.
            made.exception()


_encode = msgspec.json.encode


@dataclass(eq=False, kw_only=True)
class LiveInspector:
    """Answers about one process, whether it leads or stands by: what it knows is the same.

    The routes of `/bayplan/v1` rely on it, as a `bayplan.server.live.Inspector`. `frameworks` are the profiles by name,
    `recent` what was decided last, `configuration` the one in force, `identity` what the Lease calls this process, and
    `is_synced` whether all kinds are listed.
    """

    cache: Cache
    queue: SchedulingQueue
    frameworks: Callable[[], Mapping[str, Framework]]
    recent: RecentDecisions
    configuration: Callable[[], SchedulerConfiguration]
    is_leading: Callable[[], bool]
    is_synced: Callable[[], bool]
    identity: str
    read_classes: ReadClasses
    """Gives the PriorityClasses that pods may name."""
    stranded_devices: Callable[[], Mapping[str, float]]
    """Adds up, by driver, what is left of devices that are taken in part."""
    thread: AnswerThread = field(default_factory=AnswerThread)

    async def summary(self) -> bytes:
        """Who schedules, by what, and how it stands."""

        def work(copied: tuple[NodeTable, SummaryAnswer]) -> bytes:
            nodes, answer = copied
            return _encode(msgspec.structs.replace(answer, packing=packing_answers(nodes)))

        return await self.thread.answer(lambda: (self.cache.nodes.copy(), self._summary()), work)

    async def nodes(self) -> bytes:
        """All nodes, column by column."""
        return await self.thread.answer(self.cache.nodes.copy, lambda nodes: _encode(nodes_answer(nodes)))

    async def node(self, name: str) -> bytes:
        """One node and its pods."""
        nodes = self.cache.nodes
        row = nodes.row(name)
        if row is not None:
            assumed = [pod for uid, pod in nodes.pods[row].items() if self.cache.is_assumed(uid)]
            nominated = self.queue.nominator.nominated_pods_for_node(name)
            answer = node_answer(nodes, row, assumed, nominated)
            if answer is not None:
                return _encode(answer)
        raise RefusedQuestionError(HTTPStatus.NOT_FOUND, f"there is no node {name[:253]!a}")

    async def queue_page(self, start: int, limit: int) -> bytes:
        """Some of the pods that wait."""
        return await self.thread.answer(self._waiting, lambda waiting: _encode(waiting.page(start, limit)))

    async def decisions(self, after: int, limit: int) -> bytes:
        """Some of the last decisions."""
        first, found = self.recent.after(after, limit)
        items = [decision_item(first + number, each) for number, each in enumerate(found)]
        return _encode(DecisionsAnswer(self.recent.last, first != after + 1, items))

    async def explanation(self, namespace: str, name: str) -> bytes:
        """Why a pod is where it is, or nowhere, worked out now."""
        self._check_synced()

        def work(copied: tuple[ClusterCopy, WaitingPodsCopy]) -> bytes:
            cluster, waiting = copied
            cache = cluster.cache()
            found = find(cache, waiting, namespace, name)
            on_node = "assumed" if self.cache.is_assumed(found.pod.uid) else "bound"
            state = "pending" if found.node is None else on_node
            return _encode(explanation_answer(cluster, cache, found, waiting, state=state))

        return await self.thread.answer(lambda: (self._copy(), self._waiting()), work)

    async def simulation(self, body: bytes, count: str) -> bytes:
        """What would come of pods."""
        self._check_synced()
        known = await self.read_classes()
        return await self.thread.answer(
            self._copy, lambda copied: _encode(simulation_answer(copied, body, count, known))
        )

    def _copy(self) -> ClusterCopy:
        return ClusterCopy(self.cache, self.queue.nominator, self.configuration(), self.queue.groups)

    def _waiting(self) -> WaitingPodsCopy:
        return WaitingPodsCopy(self.queue, self.recent, time.time())

    def _check_synced(self) -> None:
        if not self.is_synced():
            text = "the cluster is still being listed"
            raise RefusedQuestionError(HTTPStatus.SERVICE_UNAVAILABLE, text, retry_after=1)

    def _summary(self) -> SummaryAnswer:
        sizes, stranded = self.cache.sizes(), self.stranded_devices()
        return SummaryAnswer(
            time=format_time(time.time()),
            version=__version__,
            identity=self.identity,
            leading=self.is_leading(),
            profiles=profile_answers(self.configuration(), self.frameworks()),
            nodes=sizes.nodes,
            pods=sizes.pods,
            queue=QueueCounts(**self.queue.pending()),
            packing=[],
            stranded_devices=round(sum(stranded.values()), 6) if stranded else None,
        )
