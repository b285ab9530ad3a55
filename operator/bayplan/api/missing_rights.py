"""Names in the log the rights to write that the role of this process lacks."""

import logging
import math
import re
import time
from collections.abc import Callable
from typing import Final

logger = logging.getLogger(__name__)

AGAIN_SECONDS: Final = 600.0
"""So long after its last line a right that is still missing is told again."""
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


class MissingRights:
    """Logs each right that is refused once, and again while it is missing; whoever reads the log relies on it.

    Of very many namespaces the first are told. `clock` is in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told: dict[tuple[str, ...], float] = {}

    def refused(self, problem: str) -> None:
        """Log the right that the text of a 403 names; a 403 of a quota or a policy names none and is ignored."""
        if (denied := _DENIED.search(problem)) is None:
            return
        verb, resource, namespace = (each or "" for each in denied.groups())
        right, now = (verb, resource, namespace), self._clock()
        if now - self._told.get(right, -math.inf) < AGAIN_SECONDS:
            return
        if len(self._told) >= _MOST_REMEMBERED:
            self._told = {each: told for each, told in self._told.items() if now - told < AGAIN_SECONDS}
            if len(self._told) >= _MOST_REMEMBERED:
                return
        self._told[right] = now
        text = "permission missing, grant %s resource=%s namespace=%r grantedBy=manifests/%s reason=%r"
        logger.error(text, verb, resource, namespace, _GRANTED_BY.get(resource, "base"), problem)
