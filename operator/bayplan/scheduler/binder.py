"""Binds one assumed pod and finds out for certain what became of it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from time import monotonic

from bayplan.api.client import ANSWER_SECONDS, ApiClient
from bayplan.api.errors import AmbiguousError, UnreachableError
from bayplan.api.objects import Pod
from bayplan.api.response import ApiResponse
from bayplan.api.watch_event import read_pod
from bayplan.cache.cache import is_finished
from bayplan.framework.interface import Binding
from bayplan.scheduler.api_calls import binding_call, pod_path
from bayplan.scheduler.cancellation import is_being_cancelled
from bayplan.scheduler.turns import Turn, Turns

logger = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS = 0.2
_MAX_PAUSE_SECONDS = 5.0
# What never answers a binding must not keep a pod from another node for ever.
_MAX_POSTS = 5
_READS = 24


class BindResult(Enum):
    """What became of a bind."""

    BOUND = "bound"
    """The pod is on the node we chose."""
    TAKEN = "taken"
    """Somebody else bound the pod, to the node we chose or another."""
    GONE = "gone"
    """The pod was deleted, recreated or ended: it is no longer ours to place."""
    REFUSED = "refused"
    """The pod is still ours and unbound, and the API server definitely did not act."""


class BindError(Exception):
    """A bind that did not happen; its text is the user's."""


@dataclass(frozen=True, slots=True)
class _Doubt:
    """A post that may have bound the pod; one that `may_land` may do so yet."""

    problem: str
    may_land: bool
    answered: bool = False


@dataclass(eq=False)
class Binder:
    """Posts bindings and resolves every doubtful answer by reading the pod.

    The caller keeps the assumption until `bind` returns. What admission refuses has failed for certain; after any other
    error of the API server the pod is read, and has failed if it is unbound. A lost answer never counts as a failure:
    the pod is read until that is clear, and posted again a few times if it is still unbound, whatever error answers
    that. This is safe because the API server binds a UID once. Before a bind is given up, the last post without
    an answer is too old to take effect: an API server ends a request after `request_timeout`, its --request-timeout,
    which is a minute unless set otherwise.
    `confirmed_node` gives the node a watch has shown the pod of a UID on, None before. `timeout` is how long an answer
    is waited for. Both are in seconds. `sleep` is how the time between doubtful answers passes, and `clock` what tells
    it. Each post and each read has its turn; a bind holds none between them.
    """

    client: ApiClient
    node_exists: Callable[[str], bool]
    confirmed_node: Callable[[str], str | None]
    on_ambiguous: Callable[[], None]
    on_conflict: Callable[[], None] = lambda: None
    timeout: float = ANSWER_SECONDS
    request_timeout: float = 60.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: Callable[[], float] = monotonic
    _reads: Turns = field(default_factory=lambda: Turns(_READS), init=False)

    async def bind(self, binding: Binding, turn: Turn) -> BindResult:
        """Bind, each post in its `turn`, and return what became of the pod.

        Raises:
            BindError: the pod is still unbound and the API server did not act; the text is why.
        """
        problem, open_until = "", -inf
        for post in range(_MAX_POSTS):
            try:
                outcome = await self._post(binding, turn, first=not post)
            except BindError as error:
                problem = str(error)
                if self.clock() >= open_until:
                    break
                # With one before that may land, the pod keeps its node all the same.
                outcome = _Doubt(problem, may_land=False)
            if isinstance(outcome, BindResult):
                return outcome
            problem = outcome.problem
            if outcome.may_land:
                open_until = self.clock() + self.request_timeout
            self.on_ambiguous()
            logger.warning("bind in doubt pod=%s/%s problem=%r", binding.namespace, binding.name, problem)
            result = await self._settle(binding, _FIRST_PAUSE_SECONDS * 2**post)
            if result is not BindResult.REFUSED:
                return result
            if outcome.answered and self.clock() >= open_until:
                break
        else:
            problem = f"still unbound after {_MAX_POSTS} attempts: {problem}"
        result = await self._outlast(binding, open_until)
        if result is BindResult.REFUSED:
            raise BindError(problem)
        return result

    async def _outlast(self, binding: Binding, until: float) -> BindResult:
        """Read the pod until it is clear what became of it, and no earlier than `until` that nothing did."""
        result, pause = BindResult.REFUSED, _FIRST_PAUSE_SECONDS
        while result is BindResult.REFUSED and (left := until - self.clock()) > 0:
            result = await self._settle(binding, min(pause, left))
            pause = min(pause * 2, _MAX_PAUSE_SECONDS)
        return result

    async def _settle(self, binding: Binding, pause: float) -> BindResult:
        """Read the pod until it, or a watch, shows what became of a binding in doubt."""
        while True:
            await self.sleep(pause)
            pause = min(pause * 2, _MAX_PAUSE_SECONDS)
            if self.confirmed_node(binding.uid) == binding.node_name:
                return BindResult.BOUND
            result = await self._read(binding)
            if result is not None:
                return result

    async def _post(self, binding: Binding, turn: Turn, *, first: bool) -> BindResult | _Doubt:
        """Post the binding once; what became of it, or what leaves it in doubt.

        Raises:
            BindError: the API server definitely did not act on this post.
        """
        call = binding_call(binding)

        def on_send() -> None:
            if not self.node_exists(binding.node_name):
                # The API server binds to any name.
                raise BindError(f"node {binding.node_name!r} is gone")
            turn.sent()

        try:
            async with turn:
                response = await self.client.request(
                    "POST", call.path, body=call.body, timeout_seconds=self.timeout, on_send=on_send
                )
                turn.answered(response)
        except BindError:
            raise
        except UnreachableError as error:
            if first:
                raise BindError(str(error)) from error
            # An earlier post may still be on its way through the server.
            return _Doubt(str(error), may_land=False)
        except AmbiguousError as error:
            return _Doubt(str(error), may_land=True)
        except (Exception, asyncio.CancelledError) as error:
            if is_being_cancelled():
                raise
            # Whatever went wrong in the client, the request may have left it.
            logger.exception("bind failed unexpectedly pod=%s/%s", binding.namespace, binding.name)
            return _Doubt(repr(error), may_land=True)
        if response.status == 201:
            return BindResult.BOUND
        return await self._read_answer(binding, response, first=first)

    async def _read_answer(self, binding: Binding, response: ApiResponse, *, first: bool) -> BindResult | _Doubt:
        """What became of a post that was not answered with success.

        Raises:
            BindError: the API server definitely did not act on this post.
        """
        status, problem = response.status, f"status {response.status}: {response.problem}"
        refused = response.is_refused_by_admission
        if refused and not first:
            # This post failed for certain. Its node is kept for an earlier one that may land, so it is posted again.
            return _Doubt(problem, may_land=False)
        if not refused and (status < 300 or status >= 500):
            # A server or proxy that answers 502 or 504 gave up waiting, and whoever it waited for may go on.
            gave_up = status in {502, 504}
            return _Doubt(problem, may_land=gave_up, answered=not gave_up)
        result = BindResult.REFUSED
        if status in {404, 409}:
            # It may mean that the pod is gone, recreated, or bound already, even by an earlier post of ours.
            shown = await self._read(binding)
            if shown is None:
                self.on_ambiguous()
            result = shown or await self._settle(binding, _FIRST_PAUSE_SECONDS)
        # Without a post of ours before this one it was somebody else.
        result = BindResult.TAKEN if first and result is BindResult.BOUND else result
        if status == 409 and result is not BindResult.BOUND:
            self.on_conflict()
        if result is BindResult.REFUSED:
            # As in kube-scheduler (util/utils.go BindPod) a conflict is not posted again: its cause is in the pod.
            raise BindError(problem)
        return result

    async def _read(self, binding: Binding) -> BindResult | None:
        """What became of the binding as read from the pod; None if it could not be read."""
        async with self._reads.turn(binding.namespace) as turn:
            status, pod = await fetch_pod(self.client, binding.namespace, binding.name, self.timeout, turn.sent)
        if status == 404:
            return BindResult.GONE
        # Every object has a UID: what has none is not an answer of the API.
        return None if pod is None or not pod.metadata.uid else _result_of(pod, binding)


async def fetch_pod(
    client: ApiClient,
    namespace: str,
    name: str,
    timeout_seconds: float = ANSWER_SECONDS,
    on_send: Callable[[], None] | None = None,
) -> tuple[int, Pod | None]:
    """Read a pod from the API server: the answer's status, 0 without one, and the pod if it can be read.

    A 404 counts as an answer only if the API server says there that nothing has that name; a proxy's does not.
    """
    try:
        response = await client.request(
            "GET", pod_path(namespace, name), timeout_seconds=timeout_seconds, on_send=on_send
        )
    except (AmbiguousError, UnreachableError, ValueError):
        return 0, None
    except (Exception, asyncio.CancelledError):
        if is_being_cancelled():
            raise
        logger.exception("reading a pod failed unexpectedly pod=%s/%s", namespace, name)
        return 0, None
    if response.status == 404 and response.reason != "NotFound":
        return 0, None
    return response.status, read_pod(response.body) if response.status == 200 else None


def _result_of(pod: Pod, binding: Binding) -> BindResult:
    bound_to = pod.spec.node_name
    if pod.metadata.uid == binding.uid and bound_to == binding.node_name:
        return BindResult.BOUND
    if pod.metadata.uid != binding.uid or pod.metadata.deletion_timestamp is not None or is_finished(pod):
        return BindResult.GONE
    return BindResult.TAKEN if bound_to else BindResult.REFUSED
