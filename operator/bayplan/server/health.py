"""Whether the process is alive and whether it can schedule, in the words of Kubernetes components."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

logger = logging.getLogger(__name__)

Check = Callable[[], str | None]
"""Returns None when all is well, else the reason in constant words: anyone on the network may read it."""

TICK_SECONDS = 1.0
STALL_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class HealthReport:
    """The outcome of one group of checks: `text` is the answer's body, in the wording kube components use."""

    healthy: bool
    text: str


class HealthChecks:
    """Named checks for `/livez` and `/readyz`; HttpServer runs them, whoever owns a condition registers it.

    Liveness must not depend on the API server: a restart does not bring it back. Readiness is for
    conditions that pass by themselves, such as caches not filled yet.
    """

    def __init__(self) -> None:
        self._shutting_down = False
        self._last_failures: dict[str, list[str]] = {}
        self._live: dict[str, Check] = {"ping": lambda: None}
        self._ready: dict[str, Check] = {"ping": lambda: None, "shutdown": self._shutdown}

    def add_liveness(self, name: str, check: Check) -> None:
        """Add a check that restarts the process when it fails; raises ValueError if the name is taken."""
        _add(self._live, name, check)

    def add_readiness(self, name: str, check: Check) -> None:
        """Add a check that only holds back traffic; raises ValueError if the name is taken."""
        _add(self._ready, name, check)

    def begin_shutdown(self) -> None:
        """From here on the process is not ready; it stays alive while binds in flight finish."""
        self._shutting_down = True

    def livez(self, *, name: str = "livez", exclude: Collection[str] = ()) -> HealthReport:
        """Run the liveness checks; `name` is the endpoint's, for the report."""
        return self._report(name, self._live, exclude)

    def readyz(self, *, exclude: Collection[str] = ()) -> HealthReport:
        """Run the readiness checks."""
        return self._report("readyz", self._ready, exclude)

    def live_check(self, check: str) -> HealthReport | None:
        """Run one liveness check; None if there is none of this name."""
        return _single(self._live, check)

    def ready_check(self, check: str) -> HealthReport | None:
        """Run one readiness check; None if there is none of this name."""
        return _single(self._ready, check)

    def _shutdown(self) -> str | None:
        return "process is shutting down" if self._shutting_down else None

    def _report(self, name: str, checks: Mapping[str, Check], exclude: Collection[str]) -> HealthReport:
        lines: list[str] = []
        failures: list[str] = []
        for check_name, check in checks.items():
            if check_name in exclude:
                lines.append(f"[+]{check_name} excluded: ok")
                continue
            reason = _run(check_name, check)
            if reason is None:
                lines.append(f"[+]{check_name} ok")
            else:
                lines.append(f"[-]{check_name} failed: {reason}")
                failures.append(check_name)
        lines.append(f"{name} check {'failed' if failures else 'passed'}\n")
        self._log_change(name, failures)
        return HealthReport(not failures, "\n".join(lines))

    def _log_change(self, name: str, failures: list[str]) -> None:
        # A probe comes every few seconds: only a change is news.
        if failures != self._last_failures.get(name, []):
            logger.info("health changed endpoint=%s failing=%s", name, ",".join(failures) or "none")
        self._last_failures[name] = failures


class LoopTicker:
    """Tells that the event loop turns: it writes down the time once a second, on the loop itself.

    `/livez` relies on it. `clock` is monotonic, in seconds. A loop stalled for longer than
    `stall_seconds`, or a ticker that died, fails the check.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, stall_seconds: float = STALL_SECONDS) -> None:
        self._clock = clock
        self._stall_seconds = stall_seconds
        self._last_tick = clock()

    async def run(self) -> None:
        """Tick until cancelled."""
        while True:
            self._last_tick = self._clock()
            await asyncio.sleep(TICK_SECONDS)

    def check(self) -> str | None:
        """The liveness check: None while the last tick is young enough."""
        age = self._clock() - self._last_tick
        if age <= self._stall_seconds:
            return None
        return f"event loop stalled for {age:.0f} s"


def _add(checks: dict[str, Check], name: str, check: Check) -> None:
    if name in checks:
        raise ValueError(f"a health check named {name!r} exists already")
    checks[name] = check


def _single(checks: Mapping[str, Check], name: str) -> HealthReport | None:
    check = checks.get(name)
    if check is None:
        return None
    reason = _run(name, check)
    if reason is None:
        return HealthReport(healthy=True, text="ok\n")
    return HealthReport(healthy=False, text=f"internal server error: {reason}\n")


def _run(name: str, check: Check) -> str | None:
    try:
        return check()
    except Exception:  # a check that breaks is a check that fails, and the others still count
        logger.exception("health check broke check=%s", name)
        return "reason withheld"
