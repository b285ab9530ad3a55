"""Binds through an extender where one does that, and as always otherwise."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from bayplan.api.errors import UnreachableError
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import Binding
from bayplan.scheduler.binder import Binder, BindError, BindResult
from bayplan.scheduler.extender.client import ExtenderClient
from bayplan.scheduler.extender.wire import ExtenderError
from bayplan.scheduler.turns import Turn

logger = logging.getLogger(__name__)

# An extender that failed late may still be binding.
_SETTLE_SECONDS = 0.2


@dataclass(eq=False, kw_only=True)
class ExtenderBinder(Binder):
    """A Binder that hands pods to the extender with a bindVerb if that is interested in them.

    An extender that fails may have bound the pod all the same: the pod is read before anything is undone
    (upstream gives the room away at once: schedule_one.go extendersBinding). `assumed` gives the pod of a UID.
    """

    extender: ExtenderClient
    assumed: Callable[[str], PodInfo | None]

    async def bind(self, binding: Binding, turn: Turn) -> BindResult:
        """As `Binder.bind`."""
        pod = self.assumed(binding.uid)
        if pod is None or not self.extender.interested(pod):
            return await super().bind(binding, turn)
        try:
            async with turn:
                turn.sent()
                await self.extender.bind(binding)
        except UnreachableError as error:
            raise BindError(str(error)) from error
        except ExtenderError as error:
            self.on_ambiguous()
            result = await self._settle(binding, _SETTLE_SECONDS)
            if result is not BindResult.REFUSED:
                return result
            if not self.extender.spec.ignorable:
                raise BindError(str(error)) from error
            logger.info("extender failed to bind and is ignored pod=%s/%s", binding.namespace, binding.name)
            return await super().bind(binding, turn)
        return BindResult.BOUND
