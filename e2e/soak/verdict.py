"""What a soak has to show, as checks of plain figures."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from e2e.bench.results import percentile
from e2e.soak.bad_namespace import BadRound
from e2e.soak.instances import Ending, Sample
from e2e.soak.ledger import Latency
from e2e.soak.plan import Plan
from e2e.soak.workload import PLAIN, SPREAD

_MINUTE = 60.0
_FEWEST_MINUTES = 2
_FEWEST_SAMPLES = 3
_MB = 1e6
_REACHED = 0.9
_RENEW_DEADLINE_SECONDS = 10.0
_BAD_AFTER_SECONDS = 20.0
"""For pods that were refused: ten to back off, and the rest for a machine that the soak keeps busy."""
_BESIDE_BAD_SECONDS = 5.0
_NOTICED_SECONDS = 20.0
"""From the deadline until the process has ended, and its end was seen, on a machine that is busy."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that had to be so, and what was found."""

    name: str
    passed: bool
    found: str


@dataclass(frozen=True, slots=True)
class Term:
    """The resident memory of one process while it led or stood by: the median of each whole minute after settling."""

    instance: str
    pid: int
    leads: bool
    first_minute: int
    medians: Sequence[int]

    @property
    def growth(self) -> float:
        """The largest of the later minutes, as a share above the first."""
        return max(self.medians) / self.medians[0] - 1


def terms(samples: Iterable[Sample], plan: Plan) -> list[Term]:
    """Returns the terms that lasted at least two minutes beyond settling; minutes are counted from the soak's start.

    A standby that becomes leader has memory of its own to fill, so its terms are judged apart, each after half the time
    to settle: caches were warm before. What is sampled after the last creation does not count.
    """
    found: list[Term] = []
    by_process = sorted(
        (each for each in samples if each.seconds < plan.seconds),
        key=lambda each: (each.instance, each.pid, each.seconds),
    )
    for (instance, pid, leads), group in groupby(by_process, key=lambda each: (each.instance, each.pid, each.leads)):
        rows = list(group)
        began = rows[0].seconds
        settle = plan.settle_minutes * _MINUTE
        judged_from = settle if began < settle else began + settle / 2
        minutes: dict[int, list[int]] = {}
        for row in rows:
            if row.seconds >= judged_from:
                minutes.setdefault(int(row.seconds // _MINUTE), []).append(row.rss)
        judged = [minute for minute, values in sorted(minutes.items()) if len(values) >= _FEWEST_SAMPLES]
        if len(judged) >= _FEWEST_MINUTES:
            medians = [int(statistics.median(minutes[minute])) for minute in judged]
            found.append(Term(instance, pid, leads, judged[0], medians))
    return found


def memory_checks(samples: Iterable[Sample], plan: Plan) -> list[Check]:
    """Every term's memory stays within the limit after settling, and a leader's term was long enough to be judged."""
    judged = terms(samples, plan)
    checks = [Check("a leader's memory was judged", any(each.leads for each in judged), f"{len(judged)} terms")]
    for term in judged:
        role = "leading" if term.leads else "standing by"
        name = f"memory of {term.instance} (pid {term.pid}), {role}, grows by at most {plan.growth_limit:.0%}"
        first, largest = term.medians[0] / _MB, max(term.medians) / _MB
        last_minute = term.first_minute + len(term.medians) - 1
        found = f"{first:.1f} MB in minute {term.first_minute}, at most {largest:.1f} MB until minute {last_minute}"
        checks.append(Check(name, term.growth <= plan.growth_limit, f"{found}: {term.growth:+.1%}"))
    return checks


def ending_checks(endings: Iterable[Ending], restarts: Sequence[tuple[float, float]]) -> list[Check]:
    """All that were told to end did with 0; nobody else ended, but for a leader that could not renew at a restart.

    `restarts` are the seconds from which, and until which, the API server was away.
    """
    told = [each for each in endings if each.told]
    others = [each for each in endings if not each.told]
    excused = [each for each in others if each.exit_code == 1 and _could_not_renew(each.seconds, restarts)]
    return [
        Check("exit code 0 at SIGTERM", all(each.exit_code == 0 for each in told) and bool(told), _codes(told)),
        Check(
            "nobody ended but a leader that could not renew",
            len(excused) == len(others) and len(others) <= len(restarts),
            _codes(others) or "nobody",
        ),
    ]


def _codes(endings: Iterable[Ending]) -> str:
    return ", ".join(f"{each.instance} {each.exit_code}" for each in endings)


def _could_not_renew(seconds: float, restarts: Iterable[tuple[float, float]]) -> bool:
    """Whether the last renewal may have been so long ago then."""
    return any(
        began + _RENEW_DEADLINE_SECONDS / 2 <= seconds <= ended + _RENEW_DEADLINE_SECONDS + _NOTICED_SECONDS
        for began, ended in restarts
    )


def promise_checks(broken: Sequence[str], lost: Sequence[str], differences: Mapping[str, str]) -> list[Check]:
    """Nothing is bound twice or wrongly, over-committed or lost; each cache equals the API server's content."""
    checks = [
        Check("nothing bound twice or where it cannot be, no node over-committed", not broken, "; ".join(broken[:3])),
        Check("nothing lost: every pod that fits is bound", not lost, "; ".join(lost[:3])),
    ]
    checks += [
        Check(f"cache of {name} equals the API server's content", not text, text) for name, text in differences.items()
    ]
    return checks


def coverage_checks(
    counts: Mapping[str, int], plan: Plan, *, created_seconds: float, restarts: Iterable[tuple[float, float]]
) -> list[Check]:
    """What the soak is for did happen: the rate while the API server was there, preemptions, resizes, node changes."""
    away = sum(min(ended, created_seconds) - min(began, created_seconds) for began, ended in restarts)
    asked = plan.rate * (created_seconds - away)
    created = counts.get("created", 0)
    checks = [
        Check(
            f"at least {_REACHED:.0%} of the pods that were to come did",
            created >= _REACHED * asked,
            f"{created} of {asked:.0f}",
        )
    ]
    others = ("preempted", "resized", "node changes")
    return checks + [Check(f"some {what}", counts.get(what, 0) > 0, str(counts.get(what, 0))) for what in others]


def bad_namespace_checks(
    rounds: Sequence[BadRound], latencies: Iterable[Latency], plan: Plan, *, started: float
) -> list[Check]:
    """Pods elsewhere are bound while a namespace's webhook fails, and that namespace's own soon after its end.

    `started` is the soak's start in the latencies' monotonic seconds.
    """
    if not plan.bad_pods:
        return []
    late = [each for each in rounds if each.after is None or each.after > _BAD_AFTER_SECONDS]
    spans = [(started + each.began, started + each.ended) for each in rounds]
    beside = percentiles(
        each
        for each in latencies
        if each.kind in {PLAIN, SPREAD} and any(began <= each.sent <= ended for began, ended in spans)
    )
    return [
        Check(
            f"pods whose webhook failed are bound within {_BAD_AFTER_SECONDS:g} s of its end",
            bool(rounds) and not late,
            ", ".join(f"{each.failure} {_seconds(each.after)}" for each in rounds) or "no round",
        ),
        Check(
            f"p99 of the others is at most {_BESIDE_BAD_SECONDS:g} s meanwhile",
            beside is not None and beside.p99 <= _BESIDE_BAD_SECONDS,
            "no bind" if beside is None else f"{beside.p99:.2f} s of {beside.pods} pods",
        ),
    ]


def _seconds(after: float | None) -> str:
    return "not in time" if after is None else f"{after:.1f} s"


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Seconds from the sending of a creation to the bind; of `pods` pods."""

    pods: int
    p50: float
    p99: float
    longest: float


def percentiles(latencies: Iterable[Latency]) -> Percentiles | None:
    """Returns the percentiles, None of nothing."""
    seconds = [each.seconds for each in latencies]
    if not seconds:
        return None
    return Percentiles(len(seconds), percentile(seconds, 0.5), percentile(seconds, 0.99), max(seconds))
