"""Holds one run of a scenario against those that were recorded."""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.oracle.gangs.recording import GroupState, Outcome, PodState, Run
from tests.oracle.gangs.scenario import Scenario

EQUAL, TIE, DIFFERENT = "equal", "tie", "different"

_UPSTREAM_DEFECT = "PodGroupPostFilter plugins: not found"
"""kube-scheduler's words where a round ends before its first pod: an error of its own, which nobody has to share."""
_SCHEDULED = ("True", "Scheduled", "")


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a run compares: `tie` where recorded runs differ, or have an error of kube-scheduler's own."""

    scenario: str
    kind: str
    lines: tuple[str, ...] = ()


def compare(scenario: Scenario, recorded: tuple[Run, ...], found: Run) -> Verdict:
    """Returns the verdict on a run: who is bound, what pods and groups are told, rest by rest.

    Who is bound must be as in one recorded run; what a pod or a group is told, as at that rest in any of them. Events
    must say what pods were told in a recorded run, by Event or condition, and not be missing where all have some.
    """
    judged = _Judged(scenario, recorded, found)
    lines = tuple(judged.differences())
    return Verdict(scenario.name, DIFFERENT if lines else TIE if judged.ties else EQUAL, lines)


class _Judged:
    def __init__(self, scenario: Scenario, recorded: tuple[Run, ...], found: Run) -> None:
        self._places = scenario.places
        self._recorded = recorded
        self._found = found
        self.ties = 0

    def differences(self) -> Iterator[str]:
        for number, outcome in enumerate(self._found):
            there = [run[number] for run in self._recorded]
            yield from self._bound(number, there, outcome)
            for name in sorted({*outcome.pods, *(name for each in there for name in each.pods)}):
                yield from self._pod(f"rest {number + 1} pod {name}", name, there, outcome)
            for name in sorted({*outcome.groups, *(name for each in there for name in each.groups)}):
                states = [each.groups.get(name) for each in there]
                yield from self._group(f"rest {number + 1} group {name}", states, outcome.groups.get(name))
        yield from self._events()

    def _bound(self, number: int, there: list[Outcome], outcome: Outcome) -> Iterator[str]:
        wanted, bound = [self._who(each) for each in there], self._who(outcome)
        if bound not in wanted:
            shown = " or ".join(sorted({_listed(each) for each in wanted}))
            yield f"rest {number + 1}: bound are {_listed(bound)}, wanted {shown}"
        self.ties += any(each != wanted[0] for each in wanted)

    def _who(self, outcome: Outcome) -> frozenset[str]:
        nodes = {name: pod.node for name, pod in outcome.pods.items() if pod.node}
        return frozenset(f"{name} on {node}" if self._places else name for name, node in nodes.items())

    def _pod(self, where: str, name: str, there: list[Outcome], outcome: Outcome) -> Iterator[str]:
        wanted = [_told(each.pods.get(name)) for each in there]
        found = _told(outcome.pods.get(name))
        if found in wanted:
            self.ties += any(each != found for each in wanted)
        elif found[0] == "False" and any(_UPSTREAM_DEFECT in text for *_, text in wanted):
            self.ties += 1
        else:
            yield f"{where} has {found}, wanted {_any_of(wanted)}"

    def _group(self, where: str, states: list[GroupState | None], state: GroupState | None) -> Iterator[str]:
        wanted, found = [_condition(each) for each in states], _condition(state)
        were_true = [each is not None and each.was_true for each in states]
        # What was True once stays so: kube-scheduler means it to, and overwrites it in a race.
        allowed = [_SCHEDULED if true else each for true, each in zip(were_true, wanted, strict=True)]
        if found in allowed:
            self.ties += allowed != wanted or any(each != found for each in allowed)
        elif found[0] == "False" and any(_UPSTREAM_DEFECT in text for *_, text in allowed):
            self.ties += 1
        else:
            yield f"{where} has {found}, wanted {_any_of(allowed)}"

    def _events(self) -> Iterator[str]:
        names = sorted({name for outcome in self._found for name in outcome.pods})
        for name in names:
            found = _all_events(self._found, name)
            recorded = [_all_events(run, name) for run in self._recorded]
            if any(_UPSTREAM_DEFECT in text for texts in recorded for text in texts):
                continue
            # kube-scheduler writes a new text as a new Event, or counts it in the series of the old one.
            conditions = [_all_messages(run, name) for run in self._recorded]
            for text in sorted(found - frozenset().union(*recorded, *conditions)):
                yield f"events of pod {name}: {text!r} is in no recorded run"
            if not found and all(recorded):
                yield f"events of pod {name}: none, wanted {_any_of(sorted(frozenset().union(*recorded)))}"


def _told(pod: PodState | None) -> tuple[str, ...]:
    if pod is None:
        return ("gone",)
    return (pod.status, pod.reason, "nominated" if pod.nominated and not pod.node else "", pod.message)


def _condition(group: GroupState | None) -> tuple[str, ...]:
    return ("gone",) if group is None else (group.status, group.reason, group.message)


def _all_events(run: Run, name: str) -> frozenset[str]:
    return frozenset(text for outcome in run if name in outcome.pods for text in outcome.pods[name].events)


def _all_messages(run: Run, name: str) -> frozenset[str]:
    return frozenset(outcome.pods[name].message for outcome in run if name in outcome.pods)


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _any_of(values: list[tuple[str, ...]] | list[str]) -> str:
    return " or ".join(dict.fromkeys(map(str, values)))
