"""`/configz`, `/flagz` and `/statusz`: what runs here, with which flags and which configuration."""

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final

import msgspec
import yaml
from aiohttp import web

from bayplan import __version__
from bayplan.server.answers import answer, plain
from bayplan.server.negotiation import JSON, MEDIA_TYPES, TEXT, YAML, Form, Kind, negotiate
from bayplan.server.slis import process_start_seconds

_NAME: Final = "bayplan"
_GROUP: Final = "config.k8s.io"
_VERSIONS: Final = ("v1alpha1", "v1beta1")
_DEPRECATED_VERSION: Final = "v1alpha1"
_NOTE: Final = "Warning: for people who look for a fault. The format may change; no program should read it."
# Clients that people look through (upstream: isPrettyPrint).
_PEOPLES: Final = ("curl", "Wget", "Mozilla/5.0")
_TRUE: Final = {"1", "t", "T", "TRUE", "true", "True"}


def configz_route(configuration: Callable[[], Mapping[str, object]]) -> web.RouteDef:
    """Return the route of `/configz`: what `configuration` gives, as JSON.

    The key is upstream's (component-base: configz). It is asked at each request, as a configuration may be taken over.
    """

    async def configz(_: web.Request) -> web.Response:
        body = msgspec.json.encode({"componentconfig": configuration()})
        return answer(body, "application/json; charset=utf-8")

    return web.get("/configz", configz)


def flagz_route(flags: Mapping[str, str]) -> web.RouteDef:
    """Return the route of `/flagz`: each flag that has a value (upstream: apiserver server/flagz)."""
    ordered = dict(sorted(flags.items()))

    def lines() -> list[str]:
        return [f"{name}={value if value.isprintable() else repr(value)}" for name, value in ordered.items()]

    return _zpage_route("flagz", lambda: {"flags": ordered} if ordered else {}, lines)


def statusz_route(
    paths: Sequence[str], kubernetes: str, *, started_at: float | None = None, now: Callable[[], float] = time.time
) -> web.RouteDef:
    """Return the route of `/statusz`: since when what runs, and below which of `paths` else to look.

    Upstream: apiserver server/statusz. `kubernetes` is the version whose behaviour it has. Times are in seconds since
    the epoch; without `started_at` it is when the process began.
    """
    started = process_start_seconds() if started_at is None else started_at
    moment = datetime.fromtimestamp(int(started), UTC)
    folders = sorted({"/" + path.split("/")[1] for path in paths})

    def fields() -> dict[str, Any]:
        return {
            "startTime": f"{moment:%Y-%m-%dT%H:%M:%SZ}",
            "uptimeSeconds": max(0, int(now() - started)),
            # The kind has to have it, and there is no Go here.
            "goVersion": "",
            "binaryVersion": __version__,
            "emulationVersion": kubernetes,
            "paths": folders,
        }

    def lines() -> list[str]:
        minutes, seconds = divmod(max(0, int(now() - started)), 60)
        hours, minutes = divmod(minutes, 60)
        return [
            "",
            f"Started: {moment:%a %b %e %H:%M:%S UTC %Y}",
            f"Up: {hours} hr {minutes:02} min {seconds:02} sec",
            f"Python version: {platform.python_version()}",
            f"Binary version: {__version__}",
            f"Emulation version: {kubernetes}",
            f"Paths: {' '.join(folders)}",
        ]

    return _zpage_route("statusz", fields, lines)


def _zpage_route(name: str, fields: Callable[[], dict[str, Any]], lines: Callable[[], list[str]]) -> web.RouteDef:
    """The route of a page that is text for people, and an object in JSON or YAML for who asks for one by its version.

    Any other Accept header is answered with 406 and a Status, as by Kubernetes' components.
    """
    kinds = [Kind(_GROUP, version, name.capitalize()) for version in _VERSIONS]

    async def page(request: web.Request) -> web.Response:
        accept = request.headers.get("Accept", "")
        # Who says nothing is shown what people read.
        form = negotiate(accept, kinds) if accept.strip() else Form(TEXT, None, indented=False)
        if form is None:
            return _refusal(request, accept)
        if form.kind is None:
            return plain(HTTPStatus.OK, text="\n".join(["", f"{_NAME} {name}", _NOTE, *lines(), ""]))
        document = {
            "kind": form.kind.kind,
            "apiVersion": f"{_GROUP}/{form.kind.version}",
            "metadata": {"name": _NAME},
            **fields(),
        }
        said = f'299 - "This version of the {name} endpoint is deprecated. Please use a newer version."'
        headers = {"Warning": said} if form.kind.version == _DEPRECATED_VERSION else None
        return answer(_encoded(request, document, form), form.content_type, headers=headers)

    return web.get(f"/{name}", page)


def _refusal(request: web.Request, accept: str) -> web.Response:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"only the following media types are accepted: {', '.join(MEDIA_TYPES)}",
        "reason": "NotAcceptable",
        "code": int(HTTPStatus.NOT_ACCEPTABLE),
    }
    form = negotiate(accept, (None,)) or Form(JSON, None, indented=True)
    return answer(_encoded(request, status, form), form.content_type, HTTPStatus.NOT_ACCEPTABLE)


def _encoded(request: web.Request, document: dict[str, Any], form: Form) -> bytes:
    if form.media_type == YAML:
        return yaml.safe_dump(document).encode()
    body = msgspec.json.encode(document)
    return msgspec.json.format(body, indent=2) if form.indented or _is_for_people(request) else body + b"\n"


def _is_for_people(request: web.Request) -> bool:
    asked = request.query.get("pretty")
    return asked in _TRUE if asked else request.headers.get("User-Agent", "").startswith(_PEOPLES)
