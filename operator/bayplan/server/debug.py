"""`/debug/cache`: whether the cache equals the API server's content."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

import msgspec
from aiohttp import web

from bayplan.logs.printable_text import shortened
from bayplan.scheduler.debugger.comparer import CacheComparison, Difference, Fact, ListError
from bayplan.server.answers import answer

LARGEST_ANSWER_BYTES = 64 * 1024
_SHOWN = 50
_LONGEST_TEXT = 200


def debug_routes(compare: Callable[[], Awaitable[CacheComparison]]) -> list[web.RouteDef]:
    """Return the route of `/debug/cache`, which answers with what `compare` finds.

    It names pods and nodes, so it is for whoever HttpServer lets in. The answer is at most `LARGEST_ANSWER_BYTES`: all
    differences are counted, the first fifty shown. Answers: 200, and 503 where the API server does
    not answer with its lists.
    """

    async def cache(_: web.Request) -> web.Response:
        try:
            found = await compare()
        except ListError as error:
            return _answer(HTTPStatus.SERVICE_UNAVAILABLE, {"error": _cut(str(error))})
        shown = sorted(found.differences, key=lambda each: (each.kind, each.key))[:_SHOWN]
        body = {
            "differences": found.counts,
            "first": [_difference(each) for each in shown],
            "compared": found.compared,
        }
        return _answer(HTTPStatus.OK, body)

    return [web.get("/debug/cache", cache)]


def _difference(difference: Difference) -> dict[str, str | None]:
    return {
        "kind": difference.kind,
        "key": _cut(difference.key),
        "cache": _text(difference.held),
        "api": _text(difference.listed),
    }


def _text(fact: Fact | None) -> str | None:
    return None if fact is None else _cut(str(fact))


def _cut(text: str) -> str:
    """Return text of bounded length in printable ASCII: names come from users, and facts of huge pods are long."""
    return shortened(ascii(text)[1:-1], _LONGEST_TEXT)


def _answer(status: HTTPStatus, body: object) -> web.Response:
    return answer(msgspec.json.encode(body) + b"\n", "application/json; charset=utf-8", status)
