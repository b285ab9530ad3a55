"""`/bayplan/v1`: what the running scheduler is asked by people, as JSON."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final, Protocol

import msgspec
from aiohttp import web

from bayplan.api.live_paths import ALL_THAT_FIT, PREFIX, SIMULATE, RefusedQuestionError
from bayplan.server.answers import answer
from bayplan.shown_text import one_line

logger = logging.getLogger(__name__)

MAX_BODY_BYTES: Final = 512 * 2**10
_LONGEST_TEXT: Final = 1000
_MOST_ON_A_PAGE: Final = 1000
_JSON: Final = "application/json"


class Inspector(Protocol):
    """Who answers; each answer is a JSON object, and each method raises RefusedQuestionError."""

    async def summary(self) -> bytes:
        """Who schedules, by what, and how it stands."""

    async def nodes(self) -> bytes:
        """All nodes, column by column."""

    async def node(self, name: str) -> bytes:
        """One node and its pods."""

    async def queue_page(self, start: int, limit: int) -> bytes:
        """Some of the pods that wait."""

    async def decisions(self, after: int, limit: int) -> bytes:
        """Some of the last decisions."""

    async def explanation(self, namespace: str, name: str) -> bytes:
        """Why a pod is where it is, or nowhere."""

    async def simulation(self, body: bytes, count: str) -> bytes:
        """What would come of pods."""


def live_routes(inspector: Inspector) -> list[web.RouteDef]:
    """Return the routes of `/bayplan/v1`; they name pods and nodes, so they are for whoever HttpServer lets in."""

    async def queue(request: web.Request) -> bytes:
        query = request.query
        limit = _number(query, "limit", 100, _MOST_ON_A_PAGE)
        return await inspector.queue_page(_number(query, "continue", 0, 10**9, least=0), limit)

    async def decisions(request: web.Request) -> bytes:
        query = request.query
        limit = _number(query, "limit", 500, _MOST_ON_A_PAGE)
        return await inspector.decisions(_number(query, "after", 0, 10**18, least=0), limit)

    async def explanation(request: web.Request) -> bytes:
        return await inspector.explanation(request.match_info["namespace"], request.match_info["name"])

    async def simulation(request: web.Request) -> bytes:
        count = count_asked(request)
        return await inspector.simulation(await request.read(), count)

    return [
        web.get(f"{PREFIX}/summary", answered(lambda _: inspector.summary())),
        web.get(f"{PREFIX}/nodes", answered(lambda _: inspector.nodes())),
        web.get(f"{PREFIX}/nodes/{{name:[^/]+}}", answered(lambda asked: inspector.node(asked.match_info["name"]))),
        web.get(f"{PREFIX}/queue", answered(queue)),
        web.get(f"{PREFIX}/decisions", answered(decisions)),
        web.get(f"{PREFIX}/namespaces/{{namespace}}/pods/{{name}}/explanation", answered(explanation)),
        web.post(SIMULATE, answered(simulation)),
    ]


def answered(
    question: Callable[[web.Request], Awaitable[bytes]],
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Return a handler that answers with what `question` gives, and with one line where it has no answer.

    The routes here and those of the page rely on it.
    """

    async def handler(request: web.Request) -> web.Response:
        try:
            return answer(await question(request), _JSON)
        except RefusedQuestionError as error:
            headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
            return answer(_error(str(error)), _JSON, error.status, headers)
        except web.HTTPException:
            raise
        except Exception:  # a defect is logged here and shown to nobody
            logger.exception("question failed method=%s path=%r", request.method, request.path)
            return answer(_error("internal error; the log has it"), _JSON, HTTPStatus.INTERNAL_SERVER_ERROR)

    return handler


def error_line(text: str) -> str:
    """Return an error as one printable line that is not too long for whoever reads it."""
    return one_line(text, _LONGEST_TEXT)


def count_asked(request: web.Request) -> str:
    """Return how many of a pod are asked about: a number, `max`, or nothing.

    Raises:
        RefusedQuestionError: it is something else.
    """
    count = request.query.get("count", "")
    if count not in {"", ALL_THAT_FIT}:
        _number(request.query, "count", 0, 10**7 - 1, least=0)
    return count


def _error(text: str) -> bytes:
    return msgspec.json.encode({"error": error_line(text)})


def _number(query: Mapping[str, str], name: str, default: int, most: int, *, least: int = 1) -> int:
    text = query.get(name, "")
    if not text:
        return default
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= 20 else -1
    if not least <= number <= most:
        raise RefusedQuestionError(HTTPStatus.BAD_REQUEST, f"{name}: {text[:40]!a} is no number from {least} to {most}")
    return number
