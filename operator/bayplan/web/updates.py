"""What the page is told, and when: what changed since its last update."""

import asyncio
import re
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any, Final

import msgspec
from msgspec import UNSET

from bayplan.api.live_paths import RefusedQuestionError
from bayplan.explain.explanation import Explanation, change_text, group_text, outcome_text
from bayplan.live.answers import DecisionItem, DecisionsAnswer, ExplanationAnswer, SimulationAnswer, SummaryAnswer
from bayplan.live.verdict import waits_with
from bayplan.server.live import Inspector, error_line
from bayplan.simulate.documents import ClusterFileError, raw_objects
from bayplan.simulate.report import Capacity, PodReport

EXPLAINED: Final = 20
"""Of the pods that are asked about, so many are explained; of the others it is told where they would go."""

_NAME: Final = "pasted text"
KEPT_POINTS: Final = 600
"""Points of the packing over time; when there are more, every second one is dropped."""

SHOWN_DECISIONS: Final = 100
SHOWN_WAITING: Final = 500
SILENCE_SECONDS: Final = 15.0
"""After so long without news a line is sent all the same, so that a browser that is gone is noticed."""

_TIME: Final = re.compile(rb'^\{"time":"[^"]*",')
_TIMELESS: Final = b"{"


def as_json(data: bytes, name: str) -> bytes:
    """Return the objects in `data`, YAML or JSON as kubectl takes them, as the body of `SchedulerClient.simulation`.

    Raises:
        ClusterFileError: it is neither, or something in it is no object; the text begins with `name`.
    """
    items = [raw.value for raw in raw_objects(data, name)]
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})


class _Told(msgspec.Struct, rename="camel", frozen=True):
    """camelCase on the wire."""


class Sentences(_Told, frozen=True):
    """An explanation in words."""

    outcome: str
    groups: list[str]
    changes: list[str]


class ToldPod(_Told, frozen=True):
    """Why a pod is where it is, and the words for it."""

    answer: ExplanationAnswer
    words: Sentences
    waits_with: str
    """What keeps its pod group from being placed; "" if nothing does."""
    first_without: Sentences | None
    """Why no node takes the first of the group that has no room."""


class ToldAskedPod(_Told, frozen=True):
    """Where a pod that was asked about would go; the explanation is there for the first ones."""

    namespace: str
    name: str
    node: str | None
    nominated: str | None
    victims: list[str]
    message: str | None
    explanation: Explanation | None
    words: Sentences | None


class ToldPlacement(_Told, frozen=True):
    """What would come of what was pasted, and how many of it fit, or why that cannot be said."""

    pods: list[ToldAskedPod]
    count: Capacity | None
    count_error: str | None


def told_pod(found: ExplanationAnswer) -> ToldPod:
    """Return the explanation of a pod with its words, for the panel of the page."""
    group = found.group
    missing = None if group is None or group.missing is None else _sentences(group.missing)
    return ToldPod(found, _sentences(found.explanation), "" if group is None else waits_with(group), missing)


async def told_placement(source: Inspector, text: bytes, count: str) -> ToldPlacement:
    """Ask where the pods and workloads of `text`, YAML or JSON, would go, and how many fit if `count` asks for that.

    Raises:
        RefusedQuestionError: they cannot be placed at all; what is only wrong with counting is told in the answer.
    """
    try:
        body = await asyncio.to_thread(as_json, text, _NAME)
    except ClusterFileError as error:
        raise RefusedQuestionError(HTTPStatus.BAD_REQUEST, str(error)) from None
    placed = _decoded(await source.simulation(body, ""))
    pods = [_asked_pod(pod, explained=at < EXPLAINED) for at, pod in enumerate(placed.pods)]
    if not count:
        return ToldPlacement(pods, None, None)
    try:
        return ToldPlacement(pods, _decoded(await source.simulation(body, count)).count, None)
    except RefusedQuestionError as error:
        return ToldPlacement(pods, None, error_line(str(error)))


def _decoded(answer: bytes) -> SimulationAnswer:
    return msgspec.json.decode(answer, type=SimulationAnswer)


def _asked_pod(pod: PodReport, *, explained: bool) -> ToldAskedPod:
    last = pod.attempts[-1]
    # A pod that evicts others has a second attempt on the room they leave; why it had to is what the first one found.
    telling = next((each for each in pod.attempts if each.victims), last)
    explanation = telling.explanation if explained and telling.explanation is not UNSET else None
    return ToldAskedPod(
        pod.namespace,
        pod.name,
        last.node,
        last.nominated_node_name,
        [*dict.fromkeys(victim for each in pod.attempts for victim in each.victims)],
        telling.message,
        explanation,
        None if explanation is None else _sentences(explanation),
    )


def _sentences(explanation: Explanation) -> Sentences:
    return Sentences(
        outcome_text(explanation),
        [*map(group_text, explanation.groups)],
        [*map(change_text, explanation.changes)],
    )


class PackingPoint(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """How well the cluster was packed at `at`: seconds since the epoch, or decisions since the beginning."""

    at: float
    nodes_used: int
    lower_bound: int
    shares: dict[str, float]
    """Of cpu and memory of all nodes, how much is requested."""


class Updates:
    """Asks a source again when told to, and tells every open page what is new; the routes rely on it.

    Only the newest answer to each question is kept, so a page that reads slowly misses what was overtaken and nothing
    piles up for it.
    """

    def __init__(self, source: Inspector, *, page: dict[str, Any]) -> None:
        self._source = source
        self._decisions: list[DecisionItem] = []
        self._points: list[PackingPoint] = []
        self._known: dict[str, bytes] = {}
        self._version: dict[str, int] = {}
        self._identity = ""
        self._news = asyncio.Condition()
        self._closed = False
        self._put("page", msgspec.json.encode(page))

    async def refresh(self, at: float, *, running: bool) -> None:
        """Ask the source for everything; `running` says whether more is to come.

        A source that refuses or does not answer is told of on the page, which keeps what it has.
        """
        error = None
        try:
            await self._sample(at)
            self._put("nodes", await self._source.nodes())
            self._put("queue", await self._source.queue_page(0, SHOWN_WAITING))
            await self._read_decisions()
        except RefusedQuestionError as refused:
            error = error_line(str(refused))
        self._put("state", msgspec.json.encode({"running": running, "error": error}))
        await self._tell()

    async def sample(self, at: float) -> None:
        """Add a point to the packing over time."""
        try:
            await self._sample(at)
        except RefusedQuestionError:
            # The next refresh says so, if it lasts.
            return
        await self._tell()

    async def show(self, topic: str, answer: bytes) -> None:
        """Tell every page a JSON answer that the source worked out itself."""
        self._put(topic, answer)
        await self._tell()

    async def close(self) -> None:
        """End the stream of every page."""
        self._closed = True
        await self._tell()

    async def events(self) -> AsyncIterator[bytes]:
        """Give the server-sent events of one page: what is known now, then what changes, until `close`."""
        seen: dict[str, int] = {}
        while not self._closed:
            sent = False
            for topic, version in [*self._version.items()]:
                if seen.get(topic) != version:
                    seen[topic] = version
                    sent = True
                    yield b"event: %s\ndata: %s\n\n" % (topic.encode(), self._known[topic])
            if sent:
                continue
            async with self._news:
                if self._closed or seen != self._version:
                    continue
                try:
                    async with asyncio.timeout(SILENCE_SECONDS):
                        await self._news.wait()
                except TimeoutError:
                    yield b": still here\n\n"

    async def _sample(self, at: float) -> None:
        answer = await self._source.summary()
        self._put("summary", answer)
        summary = msgspec.json.decode(answer, type=SummaryAnswer)
        if summary.identity != self._identity:
            # Another one leads, with decisions of its own.
            self._identity, self._decisions = summary.identity, []
        packing = summary.packing
        point = PackingPoint(
            at,
            max((each.nodes_used for each in packing), default=0),
            max((each.lower_bound for each in packing), default=0),
            {
                each.resource: round(each.requested / each.allocatable, 4)
                for each in packing
                if each.resource in {"cpu", "memory"} and each.allocatable
            },
        )
        if self._points and self._points[-1].at == at:
            self._points.pop()
        self._points.append(point)
        if len(self._points) > KEPT_POINTS:
            self._points = self._points[::2]
        self._put("history", msgspec.json.encode(self._points))

    async def _read_decisions(self) -> None:
        last = self._decisions[-1].seq if self._decisions else 0
        answer = msgspec.json.decode(await self._source.decisions(last, 1), type=DecisionsAnswer)
        if answer.last < last:
            # The scheduler has begun anew, and counts for itself.
            self._decisions, last = [], 0
        if answer.last > last:
            newest = await self._source.decisions(max(answer.last - SHOWN_DECISIONS, last), SHOWN_DECISIONS)
            found = msgspec.json.decode(newest, type=DecisionsAnswer).items
            self._decisions = [*self._decisions, *found][-SHOWN_DECISIONS:]
        self._put("decisions", msgspec.json.encode({"last": answer.last, "items": self._decisions}))

    def _put(self, topic: str, answer: bytes) -> None:
        known = self._known.get(topic)
        if known is None or _TIME.sub(_TIMELESS, known) != _TIME.sub(_TIMELESS, answer):
            self._known[topic] = answer
            self._version[topic] = self._version.get(topic, 0) + 1

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()
