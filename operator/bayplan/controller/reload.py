"""Takes over a changed configuration while the process goes on: watch, check, and swap."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from bayplan.api.errors import CredentialsError
from bayplan.api.kinds import resource_of
from bayplan.api.meta_objects import ObjectMeta
from bayplan.api.objects import Pod
from bayplan.cache.pod_info import PodInfo
from bayplan.config.changes import changed_fields, changed_profiles, restart_errors
from bayplan.config.connections import certificates_of
from bayplan.config.document import WatchedFile
from bayplan.config.errors import ConfigurationError, FieldError, forbidden, quote_unprintable
from bayplan.config.types import SchedulerConfiguration
from bayplan.controller.leadership import Leadership
from bayplan.controller.watches import Watches
from bayplan.metrics.table import Metrics
from bayplan.scheduler.engines import Engine, EngineBuilder
from bayplan.scheduler.event_recorder import EventRecorder
from bayplan.scheduler.extender.client import ExtenderClient
from bayplan.scheduler.scheduler import Scheduler

logger = logging.getLogger(__name__)

_SHOWN_ERRORS = 20


@dataclass(frozen=True, slots=True)
class ConfigurationSource:
    """Where the configuration comes from.

    `load` reads and checks `file` and adds what flags say, as at the start; it may take seconds, is called in a thread,
    and raises ConfigurationError. `own_pod` is the pod the process runs in, None where that is not known.
    """

    file: WatchedFile
    load: Callable[[], SchedulerConfiguration]
    own_pod: Pod | None = None


@dataclass(eq=False, kw_only=True)
class ConfigurationReload:
    """Has the process work by the newest configuration that is good, and by the one before while it is not.

    All of the new one is made before anything is replaced, so that it is taken over whole or not at all. Queue, cache,
    assumptions, nominations, binds and waits go on. Log, metrics and Events about the process's own pod tell what
    became of each. Without a `source` the configuration stays as it is.
    """

    source: ConfigurationSource | None
    configuration: SchedulerConfiguration
    engine: Engine
    engines: EngineBuilder
    scheduler: Scheduler
    watches: Watches
    recorder: EventRecorder
    metrics: Metrics
    leadership: Leadership | None
    _asked: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _closing: dict[asyncio.Task[None], ExtenderClient] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Note what is in force."""
        self._certificates = hash(certificates_of(self.configuration.extenders))
        self._in_force()

    def ask(self) -> None:
        """Have the file read now, changed or not."""
        self._asked.set()

    async def run(self, period_seconds: float) -> None:
        """Read the file whenever it is asked for, and when a look every `period_seconds` shows a change; for ever."""
        source = self.source
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(None if source is None else period_seconds):
                    await self._asked.wait()
            if source is not None and (self._asked.is_set() or await asyncio.to_thread(source.file.has_changed)):
                self._asked.clear()
                await self.reload(source)

    async def reload(self, source: ConfigurationSource) -> bool:
        """Read the file and take it over; False if it was refused, and then nothing has changed."""
        file = quote_unprintable(str(source.file.path))
        try:
            await asyncio.to_thread(source.file.take)
            fields = await self.replace(await asyncio.to_thread(source.load))
        except ConfigurationError as error:
            self._refused(file, _one_line(error.errors))
        except CredentialsError as error:
            self._refused(file, str(error))
        except Exception as error:
            logger.exception("reading the configuration failed unexpectedly file=%s", file)
            self._refused(file, f"{type(error).__name__}")
        else:
            self._in_force()
            self.metrics.config_reloads.add("success")
            changed = ", ".join(fields) or "nothing"
            logger.info("configuration taken over file=%s changed=%s", file, changed)
            if fields:
                self._tell("Normal", "ConfigurationReloaded", f"{file} is in force, changed: {changed}")
            return True
        return False

    async def replace(self, configuration: SchedulerConfiguration) -> list[str]:
        """Have the scheduler work by another configuration; returns what is different.

        Raises:
            ConfigurationError, CredentialsError: it cannot be taken over; nothing was replaced.
        """
        before = self.configuration
        if errors := restart_errors(before, configuration):
            raise ConfigurationError(errors)
        fields = changed_fields(before, configuration)
        certificates = hash(certificates_of(configuration.extenders))
        if certificates != self._certificates and not any(field.startswith("extenders") for field in fields):
            fields.append("extenders, by their certificates")
        if fields:
            try:
                engine = self.engines.build(configuration)
            finally:
                kinds = self.watches.forget_unwatched()
            if kinds:
                raise ConfigurationError([forbidden("profiles", text) for text in sorted(map(_unwatched, kinds))])
            await self.scheduler.take_over(engine, changed_profiles(before, configuration))
            replaced, self.engine = self.engine, engine
            for client in replaced.extenders:
                task = asyncio.create_task(client.close_when_idle(), name="close extender")
                self._closing[task] = client
                task.add_done_callback(self._closing.pop)
        self.configuration, self._certificates = configuration, certificates
        return fields

    async def close(self) -> None:
        """Close the connections to extenders."""
        clients = [*self._closing.values(), *self.engine.extenders]
        for task in self._closing:
            task.cancel()
        for client in clients:
            await client.close()

    def _in_force(self) -> None:
        self.metrics.config_is_newest.set(1)
        self.metrics.config_read_at.set(time.time())

    def _refused(self, file: str, errors: str) -> None:
        self.metrics.config_is_newest.set(0)
        self.metrics.config_reloads.add("failure")
        logger.error("configuration refused, the one before stays in force file=%s errors=%s", file, errors)
        self._tell("Warning", "ConfigurationRefused", f"{file} is not in force: {errors}")

    def _tell(self, kind: Literal["Normal", "Warning"], reason: str, note: str) -> None:
        own = None if self.source is None else self.source.own_pod
        # Replicas that do not lead may write nothing; log and metric say the same.
        if own is not None and (self.leadership is None or self.leadership.is_leading()):
            self.recorder.own(PodInfo(own), kind, reason, note)


def own_pod(environment: Mapping[str, str]) -> Pod | None:
    """Return the pod this process runs in as the downward API names it, None without its name and namespace."""
    name, namespace = environment.get("POD_NAME"), environment.get("POD_NAMESPACE")
    if not name or not namespace:
        return None
    return Pod(metadata=ObjectMeta(name=name, namespace=namespace, uid=environment.get("POD_UID", "")))


def _unwatched(kind: type) -> str:
    rights = f"with the rights of manifests/{resource_of(kind).granted_by}"
    why = f"not watched yet: the scheduler has to be started again for it, {rights}"
    return f"{kind.__name__} is looked up by its plugins and {why}"


def _one_line(errors: Collection[FieldError]) -> str:
    shown = [str(each) for each in list(errors)[:_SHOWN_ERRORS]]
    more = len(errors) - len(shown)
    return "; ".join([*shown, f"... and {more} more errors"] if more else shown)
