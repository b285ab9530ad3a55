"""What a PreBind plugin wants done before a bind: values that plugins make and the scheduling loop performs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bayplan.framework.status import Status


@dataclass(frozen=True, slots=True)
class Write:
    """A JSON merge patch of one object.

    The body should name the object's UID and resourceVersion, so that the API server refuses it when the object is
    another one or changed since it was read; any refusal fails the bind. `about` names the object for messages.
    """

    path: str
    body: dict[str, Any]
    about: str


@dataclass(frozen=True, slots=True)
class WaitFor:
    """A wait until the cluster has come to a state.

    `condition` answers None for not yet, SUCCESS when it is so, and any other status when it will not be. It is asked
    again and again, reads only what the listers have, and must be cheap. After `timeout_seconds` the bind fails.
    """

    condition: Callable[[], Status | None]
    timeout_seconds: float
    about: str


Effect = Write | WaitFor
"""One step before a bind; a plugin's steps are performed in their order."""
