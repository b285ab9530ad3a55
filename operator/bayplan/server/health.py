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


@dataclass(slots=True)
class CheckResult:
    """How one check of one endpoint has ended so far."""

    healthy: bool = True
    successes: int = 0
    errors: int = 0


class HealthChecks:
    """Named checks for `/livez` and `/readyz`; HttpServer runs them, whoever owns a condition registers it.

    Liveness must not depend on the API server: a restart does not bring it back. Readiness is for
    conditions that pass by themselves, such as caches not filled yet.
    """

    def __init__(self) -> None:
        self._shutting_down = False
        self._last_failures: dict[str, list[str]] = {}
        self.outcomes: dict[tuple[str, str], CheckResult] = {}
        """How checks ended that probes had run, by endpoint and name."""
        live: dict[str, Check] = {"ping": lambda: None}
        ready: dict[str, Check] = {"ping": lambda: None, "shutdown": self._shutdown}
        self._checks: Mapping[str, dict[str, Check]] = {"healthz": live, "livez": live, "readyz": ready}

    def add_liveness(self, name: str, check: Check) -> None:
        """Add a check that restarts the process when it fails; raises ValueError if the name is taken."""
        self._add("livez", name, check)

    def add_readiness(self, name: str, check: Check) -> None:
        """Add a check that only holds back traffic; raises ValueError if the name is taken."""
        self._add("readyz", name, check)

    def begin_shutdown(self) -> None:
        """From here on the process is not ready; it stays alive while binds in flight finish."""
        self._shutting_down = True

    def report(self, endpoint: str, exclude: Collection[str] = ()) -> HealthReport:
        """Run the checks of `healthz`, `livez` or `readyz`, not those in `exclude` (upstream: apiserver healthz.go)."""
        lines: list[str] = []
        failures: list[str] = []
        for name, check in self._checks[endpoint].items():
            if name in exclude:
                lines.append(f"[+]{name} excluded: ok")
                continue
            reason = _run(name, check)
            self._note(endpoint, name, healthy=reason is None)
            if reason is None:
                lines.append(f"[+]{name} ok")
            else:
                lines.append(f"[-]{name} failed: {reason}")
                failures.append(name)
        if unknown := sorted(set(exclude) - self._checks[endpoint].keys()):
            quoted = ",".join(f'"{name}"' for name in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}")
        lines.append(f"{endpoint} check {'failed' if failures else 'passed'}\n")
        if not exclude:  # Whoever leaves checks out hears of others than a probe.
            self._log_change(endpoint, failures)
        return HealthReport(not failures, "\n".join(lines))

    def single(self, endpoint: str, name: str) -> HealthReport | None:
        """Run one check of an endpoint; None if there is none of this name."""
        check = self._checks[endpoint].get(name)
        if check is None:
            return None
        reason = _run(name, check)
        return HealthReport(reason is None, "ok\n" if reason is None else f"internal server error: {reason}\n")

    def _note(self, endpoint: str, name: str, *, healthy: bool) -> None:
        outcome = self.outcomes.setdefault((endpoint, name), CheckResult())
        outcome.healthy = healthy
        outcome.successes += healthy
        outcome.errors += not healthy

    def _add(self, endpoint: str, name: str, check: Check) -> None:
        if name in self._checks[endpoint]:
            raise ValueError(f"a health check named {name!r} exists already")
        self._checks[endpoint][name] = check

    def _shutdown(self) -> str | None:
        return "process is shutting down" if self._shutting_down else None

    def _log_change(self, name: str, failures: list[str]) -> None:
        # A probe comes every few seconds: only a change is news.
        if failures != self._last_failures.get(name, []):
            logger.info("health changed endpoint=%s failing=%s", name, ",".join(failures) or "none")
        self._last_failures[name] = failures


class LoopTicker:
    """Tells that the event loop turns: it writes down the time once a second, on the loop itself.

    `/livez` relies on it. `clock` is monotonic, in seconds. A loop stalled for longer than
    20 seconds, or a ticker that died, fails the check.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_tick = clock()

    async def run(self) -> None:
        """Tick until cancelled."""
        while True:
            self._last_tick = self._clock()
            await asyncio.sleep(TICK_SECONDS)

    def check(self) -> str | None:
        """The liveness check: None while the last tick is young enough."""
        age = self._clock() - self._last_tick
        if age <= STALL_SECONDS:
            return None
        return f"event loop stalled for {age:.0f} s"


def _run(name: str, check: Check) -> str | None:
    try:
        return check()
    except Exception:  # a check that breaks is a check that fails, and the others still count
        logger.exception("health check broke check=%s", name)
        return "reason withheld"
