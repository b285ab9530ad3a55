"""kopf's handlers: what this operator does at its start, how it logs in, and whom it tells of pods."""

from collections.abc import Collection, Iterable

import kopf

from bayplan.api.selectors import escape_field_value
from bayplan.controller.api_access import KopfSessions
from bayplan.controller.handover import Handover

DEFAULT_SCHEDULER = "default-scheduler"
_LOGIN_PAUSE_SECONDS = 2.0
_NOT_FINISHED = "status.phase!=Succeeded,status.phase!=Failed"


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
        return kopf.AiohttpSession(server=sessions.server, aiohttp_session=await sessions.open(handover.loop))

    @kopf.on.event("", "v1", "pods", registry=registry, id="bayplan")
    async def pod_event(event: kopf.RawEvent, **_: object) -> None:
        handover.put(event)

    @kopf.on.cleanup(registry=registry, id="bayplan")
    async def end(**_: object) -> None:
        # An operator that ends by itself would wait five seconds for its own watch of this flag.
        handover.stop.set()

    return registry


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
    settings.watching.chunk_size = 500
    settings.watching.server_timeout = 270
    settings.persistence.diffbase_storage = NoEssence([])
    settings.persistence.progress_storage = kopf.MultiProgressStorage([])
    settings.posting.enabled = False
    settings.scanning.disabled = True
    # A pod mostly makes two events, a while apart; kopf would keep a worker with two tasks waiting five seconds.
    settings.queueing.idle_timeout = 0.5
    settings.networking.error_backoffs = (0.5, 1, 2, 4, 8, 15)
    # kopf would SIGKILL the whole process; ending it is the run command's business.
    settings.process.ultimate_exiting_timeout = None


class NoEssence(kopf.MultiDiffBaseStorage):
    """Finds nothing in a pod that is worth comparing: to copy all of it would cost most of an event."""

    def build(self, *, body: kopf.Body, extra_fields: Iterable[kopf.FieldSpec] | None = None) -> kopf.BodyEssence:
        """The part of a body to compare: nothing."""
        return kopf.BodyEssence({})
