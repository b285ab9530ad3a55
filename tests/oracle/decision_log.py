"""kube-scheduler's log at -v 10 in JSON, read as it grows."""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.oracle.case import Decision, Object

_POLL_SECONDS = 0.005
_WAIT_SECONDS = 60.0

_SCORED = "Plugin scored node for pod"
_TOTAL = "Calculated node's final score for pod"
_BOUND = "Successfully bound pod to node"
_VOLUMES = "BindPodVolumes"
"""The node is chosen; the pod is bound once its volumes are, which without their controllers is never."""
_NO_FIT = "Unable to schedule pod; no fit; waiting"
_NO_NODES = "Unable to schedule pod; no nodes are registered to the cluster; waiting"
_ERROR = "Error scheduling pod; retrying"
_DECIDING = (_SCORED, _TOTAL, _BOUND, _VOLUMES, _NO_FIT, _NO_NODES, _ERROR)

_DRY_RUN = "Dry run the preemption"
_CHECKED = "Check the potential node for preemption"
_VICTIM = "Pod is a potential preemption victim on node"
_TARGET = "the target node for the preemption is determined"
_SEARCHING = (_DRY_RUN, _CHECKED, _VICTIM, _TARGET)
_ENDED = "Preemptor Pod preempted victim Pod"
_ENDING = "Victim Pod is already being deleted, skipping the API call for it"
_FINISHED = "Async Preemption finished completely"
_EVICTING = (_ENDED, _ENDING, _FINISHED)

_COUNTED = {
    "Add event for node": "node-add",
    "Delete event for node": "node-delete",
    "Add event for scheduled pod": "pod-add",
    "Update event for scheduled pod": "pod-update",
    "Delete event for scheduled pod": "pod-delete",
    "Update event for unscheduled pod": "waiting-pod-update",
}
_MARKS = tuple(text.encode() for text in (*_DECIDING, *_SEARCHING, *_EVICTING, *_COUNTED))


@dataclass(slots=True)
class Evictions:
    """What the first preemption on behalf of one pod did: whose end it asked for, and who was ending anyway."""

    ended: list[str] = field(default_factory=list)
    ending: list[str] = field(default_factory=list)
    finished: bool = False


class DecisionLog:
    """Follows one kube-scheduler's log: what it has seen of the cluster, and its first decision about each pod."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = path.stat().st_size if path.exists() else 0
        self._rest = b""
        self.seen: Counter[str] = Counter()
        """How many events of each kind of `_COUNTED` the scheduler has taken in."""
        self.seen_of: Counter[tuple[str, str]] = Counter()
        """The same by kind and pod "namespace/name"."""
        self.evictions: defaultdict[str, Evictions] = defaultdict(Evictions)
        self._open: defaultdict[str, Decision] = defaultdict(Decision)
        self._done: dict[str, Decision] = {}
        self._searching = ""

    def decision(self, key: str) -> Decision:
        """Waits for the first decision about the pod "namespace/name".

        Raises:
            TimeoutError: there is none.
        """
        self.wait(lambda: key in self._done, f"a decision about {key}")
        return self._done[key]

    def wait(self, check: Callable[[], bool], what: str) -> None:
        """Reads on until `check()` is true.

        Raises:
            TimeoutError: it did not become true.
        """
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            for line in self._lines():
                self._take(line)
            if check():
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"kube-scheduler's log did not show {what}")
            time.sleep(_POLL_SECONDS)

    def forget(self) -> None:
        """Starts over, as before the next case."""
        for each in (self.seen, self.seen_of, self.evictions, self._open, self._done):
            each.clear()

    def _lines(self) -> Iterator[bytes]:
        with self._path.open("rb") as file:
            file.seek(self._offset)
            content = file.read()
        self._offset += len(content)
        *lines, self._rest = (self._rest + content).split(b"\n")
        yield from lines

    def _take(self, line: bytes) -> None:
        # Most lines at this level are requests and replies with whole objects in them.
        if not any(mark in line[:400] for mark in _MARKS):
            return
        entry = json.loads(line)
        text = entry["msg"]
        kind = _COUNTED.get(text)
        if kind is not None:
            self.seen[kind] += 1
            if "pod" in entry:
                self.seen_of[kind, key_of(entry["pod"])] += 1
        elif text in _EVICTING:
            self._take_eviction(text, entry)
        elif text in _SEARCHING:
            if text == _DRY_RUN:
                self._searching = key_of(entry["pod"])
            if self._searching not in self._done:
                self._take_search(self._open[self._searching], text, entry)
        elif text in _DECIDING and "pod" in entry:
            key = key_of(entry["pod"])
            if key not in self._done:
                self._take_decision(key, text, entry)

    def _take_eviction(self, text: str, entry: Object) -> None:
        """Evictions go on after the decision; those of later attempts of a pod are not looked at."""
        key = key_of(entry["preemptor"])
        evictions = self.evictions[key]
        if text == _FINISHED:
            evictions.finished = True
        elif text == _ENDING and key not in self._done:
            evictions.ending.append(key_of(entry["victim"]))
        elif text == _ENDED and not evictions.finished:
            evictions.ended.append(key_of(entry["victim"]))

    @staticmethod
    def _take_search(decision: Decision, text: str, entry: Object) -> None:
        if text == _DRY_RUN:
            decision.potential, decision.wanted = entry["potentialNodesNumber"], entry["candidatesNumber"]
        elif text == _CHECKED:
            decision.checked.append(entry["node"])
        elif text == _VICTIM:
            decision.candidates.setdefault(entry["node"]["name"], []).append(key_of(entry["pod"]))
        else:
            decision.nominated = entry["node"]

    def _take_decision(self, key: str, text: str, entry: Object) -> None:
        decision = self._open[key]
        if text == _SCORED:
            decision.scores.setdefault(entry["plugin"], []).append(entry["score"])
            return
        if text == _TOTAL:
            decision.feasible.append(entry["node"])
            decision.totals.append(entry["score"])
            return
        if text in (_BOUND, _VOLUMES):
            node = entry["node"]
            decision.node = node if isinstance(node, str) else node["name"]
            decision.feasible = decision.feasible or [decision.node]
            count = entry.get("feasibleNodes", len(decision.feasible))
            assert count == len(decision.feasible), f"{key}: {count} feasible nodes, {len(decision.feasible)} scored"
        else:
            decision.message = "no nodes available to schedule pods" if text == _NO_NODES else entry["err"]
            decision.error = text == _ERROR
        if len(decision.checked) >= decision.potential:
            decision.checked = []
        self._done[key] = self._sorted(decision)

    @staticmethod
    def _sorted(decision: Decision) -> Decision:
        """The decision with its nodes in the order of their names, so that equal decisions are stored alike."""
        order = sorted(range(len(decision.feasible)), key=lambda place: decision.feasible[place])
        decision.feasible = [decision.feasible[place] for place in order]
        if decision.totals:
            decision.totals = [decision.totals[place] for place in order]
        decision.scores = {name: [given[place] for place in order] for name, given in decision.scores.items()}
        return decision


def key_of(reference: Object) -> str:
    """The "namespace/name" of a pod in the log, or of a pod's metadata."""
    return f"{reference['namespace']}/{reference['name']}"
