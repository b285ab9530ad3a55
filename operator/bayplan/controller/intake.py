"""The kopf handlers: unscheduled pods in, nothing out."""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

import aiohttp
import kopf
import msgspec

from bayplan.api.objects import Pod

logger = logging.getLogger(__name__)

DEFAULT_SCHEDULER = "default-scheduler"
_LOGIN_PAUSE_SECONDS = 2.0
_NOT_FINISHED = "status.phase!=Succeeded,status.phase!=Failed"


@dataclass(frozen=True, slots=True)
class PendingPod:
    """What the intake tells: a pod as it is now, or, with `pod` None, that the one with `uid` is no longer pending.

    `error` says why a pod could not be read; then only `key` and `uid` are known.
    """

    uid: str
    key: str
    pod: Pod | None
    error: str = ""


Deliver = Callable[[PendingPod], None]


@dataclass(frozen=True, slots=True)
class Access:
    """What kopf needs to talk to the API server: where, and how to open a session."""

    server: str
    open_session: Callable[[], Awaitable[aiohttp.ClientSession]]


def field_selector(scheduler_names: Collection[str]) -> str:
    """The server-side selector for the unscheduled pods of these schedulers.

    Field selectors have no "or", so several profiles share one watch of all that is not default-scheduler's, and the
    pods of strangers are dropped on arrival.
    """
    if len(scheduler_names) == 1:
        (name,) = scheduler_names
        ours = f"spec.schedulerName={_escaped(name)},"
    else:
        ours = "" if DEFAULT_SCHEDULER in scheduler_names else f"spec.schedulerName!={DEFAULT_SCHEDULER},"
    return f"{ours}spec.nodeName=,{_NOT_FINISHED}"


def _escaped(value: str) -> str:
    """A value as field selectors want it (upstream: apimachinery fields.EscapeValue)."""
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


def build_registry(access: Access, deliver: Deliver) -> kopf.OperatorRegistry:
    """The operator's handlers: a login, and one that spies on pods.

    Only `on.event` may be used on pods: every other kind of kopf handler writes annotations or finalizers on them. The
    group is named because a bare "pods" makes kopf fail when any aggregated API is down.
    """
    registry = kopf.OperatorRegistry()
    hand = unfailing(deliver)

    @kopf.on.login(registry=registry, id="bayplan", backoff=_LOGIN_PAUSE_SECONDS)
    async def login(**_: object) -> kopf.AiohttpSession:
        return kopf.AiohttpSession(server=access.server, aiohttp_session=await access.open_session())

    def hand_over(event: kopf.RawEvent, **_: object) -> bool:
        # kopf asks a handler's filter before it sets up anything to run the handler. Taking the event here and
        # declining the rest saves a quarter of what an event costs (docs/adr/0003).
        hand(read_event(event))
        return False

    @kopf.on.event("", "v1", "pods", registry=registry, id="intake", when=hand_over)
    async def pod_event(**_: object) -> None:
        """Stand for the interest in pods; `hand_over` leaves nothing to do."""

    return registry


def unfailing(deliver: Deliver) -> Deliver:
    """The same without its exceptions: kopf would end the operator for one pod that breaks its taker."""

    def hand(told: PendingPod) -> None:
        try:
            deliver(told)
        except Exception:
            logger.exception("a pod was not taken pod=%r", told.key)

    return hand


def read_event(event: kopf.RawEvent) -> PendingPod:
    """What a watch event says of a pod; never raises, since kopf would only log it and the pod be lost."""
    body: Any = event.get("object")
    metadata = body.get("metadata") if isinstance(body, dict) else None
    if not isinstance(metadata, dict):
        metadata = {}
    uid, key = str(metadata.get("uid", "")), f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    if event.get("type") == "DELETED":
        return PendingPod(uid, key, None)
    try:
        return PendingPod(uid, key, msgspec.convert(body, Pod))
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        return PendingPod(uid, key, None, error=str(error))


def operator_settings(scheduler_names: Collection[str]) -> kopf.OperatorSettings:
    """Set kopf up to watch and do nothing else: it keeps no state on objects, posts no events, looks for no CRDs."""
    settings = kopf.OperatorSettings()
    settings.watching.field_selectors["", "v1", "pods"] = field_selector(scheduler_names)
    settings.watching.chunk_size = 500
    settings.watching.server_timeout = 270
    settings.persistence.diffbase_storage = NothingStored()
    settings.persistence.progress_storage = NoProgress()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    # A pod mostly makes one event; kopf would keep a worker with two tasks waiting five seconds for the next.
    settings.queueing.idle_timeout = 0.5
    settings.queueing.worker_limit = None
    settings.networking.error_backoffs = (0.5, 1, 2, 4, 8, 15)
    # kopf would SIGKILL the whole process; ending it is the run command's business.
    settings.process.ultimate_exiting_timeout = None
    return settings


class NothingStored(kopf.DiffBaseStorage):
    """Remembers no last-handled state: there are no change handlers, and building it costs most of an event."""

    def build(self, *, body: kopf.Body, extra_fields: Iterable[kopf.FieldSpec] | None = None) -> kopf.BodyEssence:
        """The part of a body to compare: nothing."""
        return kopf.BodyEssence({})

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:
        """The state handled last: none."""
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """Write nothing on the object."""


class NoProgress(kopf.ProgressStorage):
    """Remembers no handler's progress: spying handlers have none, and objects must stay untouched."""

    def fetch(self, *, key: kopf.HandlerId, body: kopf.Body) -> kopf.ProgressRecord | None:
        """A handler's progress: none."""
        return None

    def store(self, *, key: kopf.HandlerId, record: kopf.ProgressRecord, body: kopf.Body, patch: kopf.Patch) -> None:
        """Write nothing on the object."""

    def purge(self, *, key: kopf.HandlerId, body: kopf.Body, patch: kopf.Patch) -> None:
        """Nothing is there to be removed."""

    def touch(self, *, body: kopf.Body, patch: kopf.Patch, value: str | None) -> None:
        """Leave the object alone."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """The essence holds nothing of ours."""
        return essence
