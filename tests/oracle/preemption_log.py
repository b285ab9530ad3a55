"""What kube-scheduler's log at -v 10 tells of preemptions."""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from tests.oracle.case import Object
from tests.oracle.decision_log import DecisionLog

_DRY_RUN = "Dry run the preemption"
_CHECKED = "Check the potential node for preemption"
_VICTIM = "Pod is a potential preemption victim on node"
_TARGET = "the target node for the preemption is determined"
_ENDED = "Preemptor Pod preempted victim Pod"
_ENDING = "Victim Pod is already being deleted, skipping the API call for it"
_FINISHED = "Async Preemption finished completely"
_TEXTS = (_DRY_RUN, _CHECKED, _VICTIM, _TARGET, _ENDED, _ENDING, _FINISHED)
_UPDATED = {
    "Update event for unscheduled pod": "waiting",
    "Update event for scheduled pod": "placed",
}
_MARKS = tuple(text.encode() for text in (*_TEXTS, *_UPDATED))


@dataclass(slots=True)
class Preemption:
    """The first preemption on behalf of one pod: what was tried, and what was done.

    `wanted` is how many candidates were enough, `potential` how many nodes could have been tried, `candidates` the
    victims by node, `ended` those whose end was asked for, `ending` those that were ending anyway.
    """

    wanted: int = 0
    potential: int = 0
    checked: list[str] = field(default_factory=list)
    candidates: dict[str, list[str]] = field(default_factory=dict)
    node: str | None = None
    ended: list[str] = field(default_factory=list)
    ending: list[str] = field(default_factory=list)
    finished: bool = False


class PreemptionLog(DecisionLog):
    """Follows preemptions beside decisions; what later attempts of a pod do is not looked at."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.preemptions: defaultdict[str, Preemption] = defaultdict(Preemption)
        self.updates: Counter[tuple[str, str]] = Counter()
        """How often the scheduler saw a change of a pod "namespace/name", by "waiting" or "placed"."""
        self._searching = ""

    def forget(self) -> None:
        """Starts over, as before the next case."""
        super().forget()
        self.preemptions.clear()
        self.updates.clear()

    def _take(self, line: bytes) -> None:
        super()._take(line)
        if not any(mark in line[:400] for mark in _MARKS):
            return
        entry = json.loads(line)
        text, kind = entry["msg"], _UPDATED.get(entry["msg"])
        if kind is not None:
            self.updates[kind, _key(entry["pod"])] += 1
        elif text in (_ENDED, _ENDING, _FINISHED):
            self._carried_out(text, entry)
        elif text == _DRY_RUN:
            self._searching = _key(entry["pod"])
            self._search_of(self._searching, text, entry)
        elif text in _TEXTS:
            self._search_of(self._searching, text, entry)

    def _carried_out(self, text: str, entry: Object) -> None:
        key = _key(entry["preemptor"])
        preemption = self.preemptions[key]
        if text == _FINISHED:
            preemption.finished = True
        elif text == _ENDING and key not in self._done:
            preemption.ending.append(_key(entry["victim"]))
        elif text == _ENDED and not preemption.finished:
            preemption.ended.append(_key(entry["victim"]))

    def _search_of(self, key: str, text: str, entry: Object) -> None:
        if key in self._done:
            return
        preemption = self.preemptions[key]
        if text == _DRY_RUN:
            preemption.potential, preemption.wanted = entry["potentialNodesNumber"], entry["candidatesNumber"]
        elif text == _CHECKED:
            preemption.checked.append(entry["node"])
        elif text == _VICTIM:
            preemption.candidates.setdefault(entry["node"]["name"], []).append(_key(entry["pod"]))
        else:
            preemption.node = entry["node"]


def _key(reference: Object) -> str:
    return f"{reference['namespace']}/{reference['name']}"
