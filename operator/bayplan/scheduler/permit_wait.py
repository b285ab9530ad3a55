"""Waits for Permit plugins before a bind (upstream: framework/runtime/framework.go WaitOnPermit)."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from bayplan.config.fields import format_duration
from bayplan.framework.status import Status
from bayplan.metrics.instruments import Histogram
from bayplan.scheduler.attempt import Reserved


@dataclass(eq=False)
class PermitWaits:
    """Has each reserved pod wait until its plugins allow it, one rejects it, or the time of one is up.

    `ended` is called once a wait, later than whoever ended it returns: that may be a plugin in the middle of another
    pod's attempt. It is not called for a wait that was given up by `forget` or `stop`. `waits` receives the
    seconds of a wait by `clock`, and how it ended: `Success`, `Unschedulable` (rejected) or `Error` (its room was
    taken).
    """

    ended: Callable[[Reserved, Status], None]
    waits: Histogram[str]
    clock: Callable[[], float]
    _started: dict[str, float] = field(default_factory=dict, init=False)
    _timers: dict[str, list[asyncio.TimerHandle]] = field(default_factory=dict, init=False)

    def start(self, reserved: Reserved) -> None:
        """Begin the wait that the pod's plugins asked for."""
        loop = asyncio.get_running_loop()
        uid = reserved.pod.uid

        def ended(status: Status) -> None:
            self._cancel(uid)
            self._observe(uid, "Success" if status.ok else "Unschedulable")
            loop.call_soon(self.ended, reserved, status)

        waiting_pods = reserved.framework.waiting_pods
        waiting = waiting_pods.add(reserved.pod, reserved.placement.node_name, reserved.permit_waits, ended)
        self._started[uid] = self.clock()
        self._timers[uid] = [
            loop.call_later(seconds, waiting.reject, plugin, _timeout_message(plugin, seconds))
            for plugin, seconds in reserved.permit_waits.items()
        ]

    def forget(self, reserved: Reserved) -> bool:
        """Give up the wait, which counts as ended by an error; False if the pod does not wait."""
        uid = reserved.pod.uid
        self._cancel(uid)
        waited = reserved.framework.waiting_pods.remove(uid)
        if waited:
            self._observe(uid, "Error")
        return waited

    def stop(self) -> None:
        """Let no time run out any more."""
        for uid in list(self._timers):
            self._cancel(uid)

    def _observe(self, uid: str, result: str) -> None:
        self.waits.observe(self.clock() - self._started.pop(uid), result)

    def _cancel(self, uid: str) -> None:
        for timer in self._timers.pop(uid, ()):
            timer.cancel()


def _timeout_message(plugin: str, seconds: float) -> str:
    waited = format_duration(timedelta(seconds=seconds))
    return f"rejected due to timeout after waiting {waited} at plugin {plugin}"
