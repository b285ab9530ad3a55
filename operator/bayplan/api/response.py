"""What is asked of the API server, what its answers say, and which rights its refusals name."""

import logging
import math
import re
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from bayplan.api.errors import DECODE_ERRORS

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"


class ApiCall(msgspec.Struct, frozen=True, gc=False):
    """One request: what to send where; `about` names the object for messages.

    A body that is no bytes is JSON's values. It should name the object's UID and resourceVersion, so that the API
    server refuses it when the object is another one or changed since it was read. A `versioned` one names the version
    that it changes: after a 409 it is of no use to send it again. `accept` names another representation of the answer
    than JSON.
    """

    method: str
    path: str
    about: str
    body: Any = None
    content_type: str = JSON
    versioned: bool = False
    accept: str | None = None

    def encoded(self) -> "ApiCall":
        """Return the call with a body of bytes."""
        is_ready = self.body is None or isinstance(self.body, bytes)
        return self if is_ready else replace(self, body=msgspec.json.encode(self.body))


class ApiResponse(msgspec.Struct, frozen=True, gc=False):
    """An answer, whatever its status; `retry_after` is in seconds when the server gave one."""

    status: int
    body: bytes
    retry_after: float | None = None

    @property
    def reason(self) -> str:
        """The reason that the API server gave, as `NotFound`; empty where the answer is not its own."""
        return decode_status(self.body)[0]

    @property
    def problem(self) -> str:
        """Why the API server did not do what it was asked, as reason and message; relied on for Events and logs."""
        return ": ".join(filter(None, decode_status(self.body)))

    @property
    def is_refused_by_admission(self) -> bool:
        """Whether a webhook, a policy or a quota refused the write, or a webhook failed: it was not carried out.

        The API server says that in words alone (upstream: apiserver/pkg/admission/plugin/webhook/errors,
        plugin/policy/validating/dispatcher.go, plugin/resourcequota/controller.go).
        """
        return self.status >= 400 and _ADMISSION_REFUSAL.search(decode_status(self.body)[1]) is not None


_ADMISSION_REFUSAL = re.compile(
    r'failed calling webhook "|admission webhook ".*" denied the request|denied request: |exceeded quota: ', re.DOTALL
)


class _Status(msgspec.Struct):
    reason: str = ""
    message: str = ""


_status_decoder = msgspec.json.Decoder(_Status)
_UNKNOWN_LOGIN = "the API server does not know the token or certificate, or it has expired"


def decode_status(body: bytes) -> tuple[str, str]:
    """Return (reason, message) of an API Status; of anything else, ("", the start of the body).

    Relied on for Events and logs; never raises. To the one word that an API server has for a 401 it says what is wrong.
    """
    try:
        status = _status_decoder.decode(body)
    except DECODE_ERRORS:
        return "", body[:200].decode("utf-8", errors="replace").strip()
    return status.reason, _UNKNOWN_LOGIN if status.message == "Unauthorized" else status.message


def parse_retry_after(value: str | None) -> float | None:
    """Return the seconds of a Retry-After header, or None; API servers send no dates there."""
    return float(value) if value is not None and value.isascii() and value.isdigit() else None


logger = logging.getLogger(__name__)

AGAIN_SECONDS: Final = 600.0
"""So long after its last line a refusal that goes on is told again."""
_MOST_REMEMBERED: Final = 32
# As the API server's RBAC says it (upstream: apiserver pkg/endpoints/handlers/responsewriters/errors.go).
_DENIED: Final = re.compile(r'cannot (\S+) resource "([^"]+)" in API group "[^"]*"(?: in the namespace "([^"]*)")?')
_GRANTED_BY: Final = {
    "pods": "components/preemption",
    "pods/eviction": "components/careful-preemption",
    "persistentvolumes": "components/volumes",
    "persistentvolumeclaims": "components/volumes",
    "resourceclaims": "components/devices",
    "resourceclaims/status": "components/devices",
    "resourceclaims/binding": "components/devices",
}


class Refusals:
    """Logs what a missing right or admission refuses, once and again while it lasts; who reads the log relies on it.

    Of very many namespaces the first are told. `clock` is in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told: dict[tuple[str, ...], float] = {}

    def forbidden(self, problem: str) -> None:
        """Log the right that the text of a 403 names; a 403 of a quota or a policy names none and is ignored."""
        if (denied := _DENIED.search(problem)) is None:
            return
        verb, resource, namespace = (each or "" for each in denied.groups())
        if self._is_to_be_told(verb, resource, namespace):
            text = "permission missing, grant %s resource=%s namespace=%r grantedBy=manifests/%s reason=%r"
            logger.error(text, verb, resource, namespace, _GRANTED_BY.get(resource, "base"), problem)

    def by_admission(self, resource: str, namespace: str) -> None:
        """Log that admission refuses writes of a resource, like `pods/binding`, in a namespace."""
        if self._is_to_be_told(resource, namespace):
            text = "admission refuses writes, and the Events of the pods say why resource=%s namespace=%r"
            logger.warning(text, resource, namespace)

    def _is_to_be_told(self, *refusal: str) -> bool:
        now = self._clock()
        if now - self._told.get(refusal, -math.inf) < AGAIN_SECONDS:
            return False
        if len(self._told) >= _MOST_REMEMBERED:
            self._told = {each: told for each, told in self._told.items() if now - told < AGAIN_SECONDS}
            if len(self._told) >= _MOST_REMEMBERED:
                return False
        self._told[refusal] = now
        return True
