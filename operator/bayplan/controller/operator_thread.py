"""The kopf operator: its handlers, and the thread of its own in which it runs and is started again when it ends."""

import asyncio
import logging
import ssl
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, repeat
from typing import Any, cast

import aiohttp
import kopf

from bayplan.api.client import USER_AGENT
from bayplan.api.credentials import Credentials
from bayplan.api.selectors import escape_field_value
from bayplan.api.watch_event import PodEvent, pod_event
from bayplan.controller.own_thread import begin

logger = logging.getLogger(__name__)

DEFAULT_SCHEDULER = "default-scheduler"
_LOGIN_PAUSE_SECONDS = 2.0
_NOT_FINISHED = "status.phase!=Succeeded,status.phase!=Failed"
_MATCHES_NOTHING = "status.phase=Succeeded"
_FIRST_PAUSE_SECONDS = 1.0
_MAX_PAUSE_SECONDS = 30.0
_STEADY_SECONDS = 60.0
_END_SECONDS = 1.0
_CONNECT_SECONDS = 10.0


@dataclass(eq=False)
class Handover:
    """Carries pod events from kopf's loop to the scheduler's `loop`, in their order.

    kopf's handlers rely on it; its methods may be called from any thread. `take` is called on `loop` with each event,
    `on_start` with nothing once the operator is up, `on_list` whenever it is about to watch anew. What `take` raises is
    logged, and the next event goes on. `stop` is the operator's stop flag: set it to end the operator; one that ends by
    itself sets it, too.
    """

    loop: asyncio.AbstractEventLoop
    take: Callable[[PodEvent], None]
    on_start: Callable[[], None]
    on_list: Callable[[], None] = lambda: None
    stop: threading.Event = field(default_factory=threading.Event, init=False)
    _events: deque[PodEvent] = field(default_factory=deque, init=False)
    _is_waking: bool = field(default=False, init=False)

    def started(self) -> None:
        """The operator is up."""
        self.loop.call_soon_threadsafe(self.on_start)

    def put(self, event: PodEvent) -> None:
        """Hand over an event; the loop is woken only if it does not come for others anyway."""
        if self.stop.is_set():
            return  # Nobody waits for it, and the loop may be closed.
        self._events.append(event)
        if not self._is_waking:
            self._is_waking = True
            self.loop.call_soon_threadsafe(self._take_all)

    def _take_all(self) -> None:
        # First, so that an event that comes from here on either is seen below or wakes the loop again.
        self._is_waking = False
        while self._events:
            event = self._events.popleft()
            try:
                self.take(event)
            except Exception:
                logger.exception("a pod's event was not taken type=%s", event.type)


class KopfSessions:
    """Logs kopf in.

    kopf logs in again when a session was refused, so a second session means the token of the first is no good.
    """

    def __init__(self, credentials: Credentials) -> None:
        self.server = credentials.server
        self._credentials = credentials
        self._last_token: str | None = None

    async def open(
        self, home: asyncio.AbstractEventLoop, on_list: Callable[[], None] = lambda: None
    ) -> aiohttp.ClientSession:
        """A session on the running loop, with a token that was not refused before; credentials live on `home`.

        kopf's own list of pods is made empty. kopf needs but its version, to begin the watch; if it got the pods,
        it would make an event of each. `on_list` is called on `home` after each list, so that others list the pods.
        """
        token, context = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._identity(), home))

        async def list_none(request: aiohttp.ClientRequest, go_on: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
            selector = request.url.query.get("fieldSelector")
            if selector is None or "watch" in request.url.query:
                return await go_on(request)
            request.url = request.url.update_query(fieldSelector=f"{selector},{_MATCHES_NOTHING}")
            response = await go_on(request)
            if response.ok:
                home.call_soon_threadsafe(on_list)
            return response

        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=context),
            middlewares=(list_none,),
            # On a cluster's network compression costs more time than it saves.
            headers={"User-Agent": f"{USER_AGENT} kopf", "Accept-Encoding": "identity"}
            | ({"Authorization": f"Bearer {token}"} if token else {}),
            proxy=self._credentials.proxy,
        )

    async def _identity(self) -> tuple[str | None, ssl.SSLContext]:
        if self._last_token is not None:
            self._credentials.invalidate(self._last_token)
        self._last_token = await self._credentials.token()
        return self._last_token, self._credentials.ssl_context()


@dataclass(eq=False)
class OperatorThread:
    """Keeps a kopf operator running, on a loop that is kopf's alone.

    kopf ends its operator on many faults that pass (a broken line, a 5xx that lasts, a token not renewed yet), and on
    ending it cancels every task of its loop. Watches, binds and probes are on the scheduler's loop and go on. Each
    time that kopf begins to watch anew, `on_list` is called: it tells neither of the pods that there are by then, nor
    of those that vanished meanwhile. Events go to `take`, on the scheduler's loop.
    """

    scheduler_names: Collection[str]
    sessions: KopfSessions
    take: Callable[[PodEvent], None]
    on_list: Callable[[], None]
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    restarts: int = field(default=0, init=False)
    _pausing: asyncio.Task[None] | None = field(default=None, init=False)
    _is_up: bool = field(default=False, init=False)
    _stop: threading.Event | None = field(default=None, init=False)

    def problem(self) -> str | None:
        """Why pods are not heard of, in constant words; None while an operator is up."""
        return None if self._is_up else "kopf is not running"

    async def run(self) -> None:
        """Run operators for ever; when cancelled, return once the last one ended, or after a second without it."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            started = self.clock()
            problem = await self._operate()
            self.restarts += 1
            if self.clock() - started >= _STEADY_SECONDS:
                pause = _FIRST_PAUSE_SECONDS
            logger.warning("kopf operator ended and is started again problem=%r pause=%.0fs", problem, pause)
            pause = _FIRST_PAUSE_SECONDS if await self._pause(pause) else min(pause * 2, _MAX_PAUSE_SECONDS)

    def end_pause(self) -> None:
        """Start the next operator now, if one ended: the API server was away and is back."""
        if self._pausing is not None:
            self._pausing.cancel()

    def restart(self) -> None:
        """End the operator, if one runs, so that the next one watches anew."""
        if self._stop is not None:
            self._stop.set()

    async def _pause(self, seconds: float) -> bool:
        """Wait; return whether that was cut short."""
        self._pausing = asyncio.ensure_future(self.sleep(seconds))
        try:
            await asyncio.wait([self._pausing])
            return self._pausing.cancelled()
        finally:
            self._pausing.cancel()
            self._pausing = None

    async def _operate(self) -> str:
        """Run one operator until it ends; return why it did."""
        loop = asyncio.get_running_loop()
        handover = Handover(loop, self.take, self._started, self.on_list)
        self._stop = handover.stop
        registry = build_registry(self.scheduler_names, self.sessions, handover)
        ended = begin(partial(_run_operator, registry, handover.stop, type(loop)), "kopf")
        try:
            return await asyncio.shield(ended)
        except asyncio.CancelledError:
            handover.stop.set()
            await asyncio.wait([ended], timeout=_END_SECONDS)
            raise
        finally:
            self._is_up = False
            self._stop = None

    def _started(self) -> None:
        self._is_up = True


def _run_operator(
    registry: kopf.OperatorRegistry, stop: threading.Event, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> str:
    async def operate() -> None:
        try:
            await kopf.operator(registry=registry, clusterwide=True, standalone=True, stop_flag=stop)
        finally:
            # However it ended: a thread of kopf's waits for the flag, and the loop's end for that thread.
            stop.set()

    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(operate())
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  it is reported by who starts the next one
        return f"{type(error).__name__}: {error}"
    return "it returned"


def build_registry(
    scheduler_names: Collection[str], sessions: KopfSessions, handover: Handover
) -> kopf.OperatorRegistry:
    """The operator's handlers, which run on kopf's loop.

    Only `on.event` may be used on pods: every other kind of kopf handler writes annotations or finalizers on them. The
    group is named because a bare "pods" makes kopf fail when any aggregated API is down.
    """
    registry = kopf.OperatorRegistry()

    @kopf.on.startup(registry=registry, id="bayplan")
    async def start(settings: kopf.OperatorSettings, **_: object) -> None:
        configure(settings, scheduler_names)
        handover.started()

    @kopf.on.login(registry=registry, id="bayplan", backoff=_LOGIN_PAUSE_SECONDS)
    async def login(**_: object) -> kopf.AiohttpSession:
        session = await sessions.open(handover.loop, handover.on_list)
        return kopf.AiohttpSession(server=sessions.server, aiohttp_session=session)

    @kopf.on.event("", "v1", "pods", registry=registry, id="bayplan")
    async def on_pod(event: kopf.RawEvent, **_: object) -> None:
        handover.put(pod_event(event))
        _drop_bulk(cast("MutableMapping[str, Any]", event["object"]))

    @kopf.on.cleanup(registry=registry, id="bayplan")
    async def end(**_: object) -> None:
        # An operator that ends by itself would wait five seconds for its own watch of this flag.
        handover.stop.set()

    return registry


def _drop_bulk(body: MutableMapping[str, Any]) -> None:
    """Empty a pod of what nobody reads any more: kopf leaves each in a cycle, which is collected some time later."""
    for part, names in ((body, ("spec", "status")), (body["metadata"], ("annotations", "managedFields"))):
        for name in names:
            part.pop(name, None)


def field_selector(scheduler_names: Collection[str]) -> str:
    """The server-side selector for the unscheduled pods of these schedulers.

    Field selectors have no "or", so several profiles share one watch of all that is not default-scheduler's, and the
    pods of strangers are dropped on arrival.
    """
    if len(scheduler_names) == 1:
        (name,) = scheduler_names
        ours = f"spec.schedulerName={escape_field_value(name)},"
    else:
        ours = "" if DEFAULT_SCHEDULER in scheduler_names else f"spec.schedulerName!={DEFAULT_SCHEDULER},"
    return f"{ours}spec.nodeName=,{_NOT_FINISHED}"


def configure(settings: kopf.OperatorSettings, scheduler_names: Collection[str]) -> None:
    """Have kopf watch and do nothing else: it keeps no state on objects, posts no events, looks for no CRDs."""
    settings.watching.field_selectors["", "v1", "pods"] = field_selector(scheduler_names)
    settings.watching.server_timeout = 270
    settings.persistence.diffbase_storage = NoEssence([])
    settings.persistence.progress_storage = kopf.MultiProgressStorage([])
    settings.posting.enabled = False
    settings.scanning.disabled = True
    # A pod mostly makes two events, a while apart; kopf would keep a worker with two tasks waiting five seconds.
    settings.queueing.idle_timeout = 0.5
    settings.networking.error_backoffs = Patience()
    settings.networking.connect_timeout = _CONNECT_SECONDS
    # kopf would SIGKILL the whole process; ending it is the run command's business.
    settings.process.ultimate_exiting_timeout = None


class Patience(Iterable[float]):
    """kopf's waits between tries, in seconds: without an end, and short ones.

    kopf would give up and end its operator in an outage. One that goes on hears of the next pod within seconds of the
    API server's return.
    """

    def __iter__(self) -> Iterator[float]:
        """Begin anew."""
        return chain((0.5, 1.0, 2.0), repeat(3.0))


class NoEssence(kopf.MultiDiffBaseStorage):
    """Finds nothing in a pod that is worth comparing: to copy all of it would cost most of an event."""

    def build(self, *, body: kopf.Body, extra_fields: Iterable[kopf.FieldSpec] | None = None) -> kopf.BodyEssence:
        """The part of a body to compare: nothing."""
        return kopf.BodyEssence({})
