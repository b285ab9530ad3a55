"""Answers of the API with the sentences that the page shows of them, which are those of `simulate --explain`."""

import asyncio
from http import HTTPStatus
from typing import Final

import msgspec
from msgspec import UNSET

from bayplan.explain.explanation import Explanation
from bayplan.explain.text import change_text, group_text, outcome_text
from bayplan.live.answers import ExplanationAnswer, SimulationAnswer
from bayplan.server.live import Inspector, RefusedQuestionError, error_line
from bayplan.simulate.documents import ClusterFileError, raw_objects
from bayplan.simulate.report import Capacity, PodReport


def as_json(data: bytes, name: str) -> bytes:
    """Return the objects in `data`, YAML or JSON as kubectl takes them, as the body of `SchedulerClient.simulate`.

    Raises:
        ClusterFileError: it is neither, or something in it is no object; the text begins with `name`.
    """
    items = [raw.value for raw in raw_objects(data, name)]
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})


EXPLAINED: Final = 20
"""Of the pods that are asked about, so many are explained; of the others it is told where they would go."""
_NAME: Final = "pasted text"


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
    return ToldPod(found, _sentences(found.explanation))


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
