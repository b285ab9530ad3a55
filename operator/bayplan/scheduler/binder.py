"""Binds one assumed pod and finds out for certain what became of it."""

import asyncio
import logging
from collections.abc import Callable
from enum import Enum

import msgspec

from bayplan.api.client import ApiClient, decode_status
from bayplan.api.errors import AmbiguousError, UnreachableError
from bayplan.api.objects import Pod
from bayplan.framework.interface import Binding
from bayplan.scheduler.api_calls import binding_call, pod_path

logger = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS = 0.2
_MAX_PAUSE_SECONDS = 5.0

_pod_decoder = msgspec.json.Decoder(Pod)


class BindResult(Enum):
    """What became of a bind."""

    BOUND = "bound"
    """The pod is on the node we chose."""
    GONE = "gone"
    """The pod was deleted, recreated, ended, or bound by somebody else: it is no longer ours to place."""
    REFUSED = "refused"
    """The pod is still ours and unbound, and the API server definitely did not act."""


class BindError(Exception):
    """A bind that did not happen; its text is the user's."""


class Binder:
    """Posts bindings and resolves every doubtful answer by reading the pod.

    The caller keeps the assumption until `bind` returns. A lost answer never counts as a failure: the binding is
    asked about, and posted again if it did not happen, which is safe because the API server binds a UID once.
    """

    def __init__(
        self,
        client: ApiClient,
        *,
        node_exists: Callable[[str], bool],
        confirmed: Callable[[str], bool],
        on_ambiguous: Callable[[], None],
        timeout_seconds: float = 10.0,
    ) -> None:
        self._client = client
        self._node_exists = node_exists
        self._confirmed = confirmed
        self._on_ambiguous = on_ambiguous
        self._timeout = timeout_seconds

    async def bind(self, binding: Binding) -> BindResult:
        """Bind, and return what became of the pod.

        Raises:
            BindError: the pod is still unbound and the API server did not act; says why.
        """
        pause = _FIRST_PAUSE_SECONDS
        while True:
            # The API server binds to any name: a node that went away since the decision must be caught here.
            if not self._node_exists(binding.node_name):
                raise BindError(f"node {binding.node_name!r} is gone")
            result = await self._post(binding)
            if result is not None:
                return result
            await asyncio.sleep(pause)
            pause = min(pause * 2, _MAX_PAUSE_SECONDS)
            if self._confirmed(binding.uid):
                return BindResult.BOUND
            result = await self._read(binding)
            if result is BindResult.BOUND or result is BindResult.GONE:
                return result

    async def _post(self, binding: Binding) -> BindResult | None:
        """Post the binding once; None if the answer leaves it in doubt.

        Raises:
            BindError: the API server definitely did not act.
        """
        call = binding_call(binding)
        try:
            response = await self._client.request("POST", call.path, body=call.body, timeout_seconds=self._timeout)
        except UnreachableError as error:
            raise BindError(str(error)) from error
        except AmbiguousError as error:
            self._doubt(binding, str(error))
            return None
        if response.status < 300:
            return BindResult.BOUND
        problem = f"status {response.status}: {': '.join(filter(None, decode_status(response.body)))}"
        if response.status >= 500:
            self._doubt(binding, problem)
            return None
        # A 404 or 409 may mean the pod is gone, recreated, or bound already, even by an earlier post of ours.
        result = await self._read(binding) if response.status in {404, 409} else BindResult.REFUSED
        if result is BindResult.REFUSED:
            raise BindError(problem)
        if result is None:
            self._doubt(binding, problem)
        return result

    def _doubt(self, binding: Binding, problem: str) -> None:
        self._on_ambiguous()
        logger.warning("bind in doubt pod=%s/%s problem=%r", binding.namespace, binding.name, problem)

    async def _read(self, binding: Binding) -> BindResult | None:
        """What the pod itself says; None if it could not be asked."""
        try:
            response = await self._client.request(
                "GET", pod_path(binding.namespace, binding.name), timeout_seconds=self._timeout
            )
        except (AmbiguousError, UnreachableError):
            return None
        if response.status == 404:
            return BindResult.GONE
        try:
            pod = _pod_decoder.decode(response.body) if response.status < 300 else None
        except msgspec.DecodeError:
            pod = None
        return None if pod is None else _result_of(pod, binding)


def _result_of(pod: Pod, binding: Binding) -> BindResult:
    bound_to = pod.spec.node_name
    if pod.metadata.uid == binding.uid and bound_to == binding.node_name:
        return BindResult.BOUND
    if pod.metadata.uid != binding.uid or bound_to or pod.metadata.deletion_timestamp is not None:
        return BindResult.GONE
    return BindResult.REFUSED
