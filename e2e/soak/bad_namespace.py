"""A namespace beside the soak's own whose webhook fails all binds: it hangs, refuses and denies in turn."""

import asyncio
import itertools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from e2e.bench.workload import SCHEDULER_NAME
from e2e.controlplane.failing_webhook import BINDING, DENIES, HANGS_31, REFUSED, failing_admission
from e2e.controlplane.objects import pod
from e2e.controlplane.plane import ControlPlane
from e2e.soak.plan import Plan

NAMESPACE = "soak-bad"
_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class BadRound:
    """One failure, from when its pods came until it ended, in seconds of the soak.

    `after` is how long the last pod took after the end; it is None if that was too long to wait for.
    """

    failure: str
    began: float
    ended: float
    after: float | None


class BadNamespace:
    """Goes through the rounds of a plan, in a thread that lives as long as each webhook: the kernel ends both together.

    `alone` keeps a round and a restart of the API server apart, however long either takes.
    Its pods are not in the ledger, which knows those of the soak's own namespace: they need not be bound in time.
    """

    def __init__(self, plane: ControlPlane, plan: Plan, clock: Callable[[], float], alone: asyncio.Lock) -> None:
        self.rounds: list[BadRound] = []
        self._plane = plane
        self._plan = plan
        self._clock = clock
        self._alone = alone
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="bad-namespace")

    async def run(self) -> None:
        """Ends with the last round; each leaves the namespace empty."""
        for moment, failure in zip(self._plan.bad_rounds_at, itertools.cycle((HANGS_31, REFUSED, DENIES))):
            await asyncio.sleep(max(0.0, moment - self._clock()))
            async with self._alone:
                await asyncio.get_running_loop().run_in_executor(self._thread, self._fail, failure)

    def _fail(self, failure: str) -> None:
        with failing_admission(self._plane, NAMESPACE, BINDING, failure):
            began = self._clock()
            names = [f"bad-{index}" for index in range(self._plan.bad_pods)]
            self._plane.client.create_all("pods", [pod(name, NAMESPACE, scheduler=SCHEDULER_NAME) for name in names])
            time.sleep(max(0.0, began + self._plan.bad_seconds - self._clock()))
            ended = self._clock()
        after = self._wait_bound(ended)
        self.rounds.append(BadRound(failure, began, ended, after))
        self._plane.client.delete_all("pods", NAMESPACE)

    def _wait_bound(self, ended: float) -> float | None:
        while self._plane.client.list("pods", NAMESPACE, fieldSelector="spec.nodeName="):
            if self._clock() >= ended + self._plan.bad_seconds:
                return None
            time.sleep(_POLL_SECONDS)
        return self._clock() - ended

    def close(self) -> None:
        """Lets the thread end."""
        self._thread.shutdown()
