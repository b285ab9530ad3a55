"""kube-scheduler's log at -v 10 in JSON, read as it grows."""

import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.oracle.case import Decision, Object

_POLL_SECONDS = 0.005
_WAIT_SECONDS = 60.0

_ATTEMPT = "Attempting to schedule pod"
_SCORED = "Plugin scored node for pod"
_TOTAL = "Calculated node's final score for pod"
_BOUND = "Successfully bound pod to node"
_VOLUMES = "BindPodVolumes"
"""The node is chosen; the pod is bound once its volumes are, which without their controllers is never."""
_NO_FIT = "Unable to schedule pod; no fit; waiting"
_NO_NODES = "Unable to schedule pod; no nodes are registered to the cluster; waiting"
_ERROR = "Error scheduling pod; retrying"
_GONE = re.compile(r'^running (?:Pre)?Bind plugin ".*": .*\bnot found$')
_HINTED = "OpportunisticBatch provided node hint"
_HINT_REFUSED = "OpportunisticBatch hint not used"
_DECIDING = (_SCORED, _TOTAL, _BOUND, _VOLUMES, _NO_FIT, _NO_NODES, _ERROR, _HINTED, _HINT_REFUSED)
_CONDITION = "Updating pod condition and nominated node name"
"""The last line about an attempt without a node: what becomes of the pod's nomination."""

_DRY_RUN = "Dry run the preemption"
_CHECKED = "Check the potential node for preemption"
_VICTIMS = "Pods are potential preemption victims on node"
_TARGET = "the target node for the preemption is determined"
_SEARCHING = (_DRY_RUN, _CHECKED, _VICTIMS, _TARGET)
_ENDED = "Preemptor Pod preempted victim Pod"
_ENDING = "Victim Pod is already being deleted, skipping the API call for it"
_FINISHED = "Async Preemption finished completely"
_EVICTING = (_ENDED, _ENDING, _FINISHED)
_STILL_ENDING = "not eligible due to a terminating pod on the nominated node"

_COUNTED = {
    "Add event for node": "node-add",
    "Update event for node": "node-update",
    "Delete event for node": "node-delete",
    "Add event for scheduled pod": "pod-add",
    "Update event for scheduled pod": "pod-update",
    "Delete event for scheduled pod": "pod-delete",
    "Add event for unscheduled pod": "waiting-pod-add",
    "Update event for unscheduled pod": "waiting-pod-update",
    "ResourceSlice added": "slice-add",
    "ResourceSlice deleted": "slice-delete",
}
_OVERRIDE = 1
"""The nominating mode in which a nomination is set, or ended by an empty one."""
_MESSAGE = b'"msg":"'
_MARKS = frozenset(text.encode() for text in (_ATTEMPT, *_DECIDING, *_SEARCHING, *_EVICTING, _CONDITION, *_COUNTED))


@dataclass(slots=True)
class Evictions:
    """What the first preemption on behalf of one pod did: whose end it asked for, and who was ending anyway."""

    ended: list[str] = field(default_factory=list)
    ending: list[str] = field(default_factory=list)
    finished: bool = False


class DecisionLog:
    """Follows one kube-scheduler's log: what it has seen of the cluster, and its first decision about each pod.

    Names of pods come again in the next case. What is said of a pod counts once an attempt on it began after it was
    added in this case: before that it is about the pod of that name of a case before.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = path.stat().st_size if path.exists() else 0
        self._rest = b""
        self.seen: Counter[str] = Counter()
        """How many events of each kind of `_COUNTED` the scheduler has taken in."""
        self.seen_of: Counter[tuple[str, str]] = Counter()
        """The same by kind and pod "namespace/name", or node."""
        self.nominations: dict[str, bool] = {}
        """Whether the last failed attempt on a pod "namespace/name" said anything of its nomination."""
        self.tried_again: set[str] = set()
        """Pods with a nomination that a later attempt placed, or took elsewhere."""
        self.binding: set[str] = set()
        """Pods that are assumed on a node while their volumes are bound; once deleted, for up to a second more."""
        self.evictions: defaultdict[str, Evictions] = defaultdict(Evictions)
        self._begun: set[str] = set()
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
        for each in (
            self.seen,
            self.seen_of,
            self.nominations,
            self.tried_again,
            self.binding,
            self.evictions,
            self._begun,
            self._open,
            self._done,
        ):
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
        start = line.find(_MESSAGE, 0, 200) + len(_MESSAGE)
        if line[start : line.find(b'"', start)] not in _MARKS:
            return
        entry = json.loads(line)
        text = entry["msg"]
        if text in _COUNTED:
            kind, about = _COUNTED[text], entry.get("pod") or entry.get("node") or entry["slice"]
            self.seen[kind] += 1
            self.seen_of[kind, key_of(about.get("metadata", about))] += 1
        elif text in _EVICTING:
            self._take_eviction(text, entry)
        elif text in _SEARCHING:
            self._take_search(text, entry)
        elif text == _ATTEMPT:
            if self.seen_of["waiting-pod-add", key_of(entry["pod"])]:
                self._begun.add(key_of(entry["pod"]))
        elif "pod" in entry and key_of(entry["pod"]) in self._begun:
            self._take_attempt(text, entry)

    def _take_attempt(self, text: str, entry: Object) -> None:
        key = key_of(entry["pod"])
        if text == _VOLUMES:
            self.binding.add(key)
        elif text in (_BOUND, _ERROR):
            self.binding.discard(key)
        if text == _ERROR and _GONE.match(entry["err"]):
            # It left with its scene before its bind; the pod of its name in this scene is still to be decided.
            return
        if text == _CONDITION:
            self.nominations[key] = entry.get("nominatingMode", 0) == _OVERRIDE
        elif key not in self._done:
            self._take_decision(key, text, entry)
        elif self._done[key].nominated is not None:
            self._take_later_attempt(key, text, entry)

    def _take_eviction(self, text: str, entry: Object) -> None:
        """Evictions go on after the decision; those of later attempts of a pod are not looked at."""
        key = key_of(entry["preemptor"])
        if key not in self._begun:
            return
        evictions = self.evictions[key]
        if text == _FINISHED:
            evictions.finished = True
        elif text == _ENDING and key not in self._done:
            evictions.ending.append(key_of(entry["victim"]))
        elif text == _ENDED and not evictions.finished:
            evictions.ended.append(key_of(entry["victim"]))

    def _take_later_attempt(self, key: str, text: str, entry: Object) -> None:
        """A preemptor is tried again while its victims end; as long as it has to wait, nothing changes."""
        if text in (_BOUND, _VOLUMES, _ERROR) or (text == _NO_FIT and _STILL_ENDING not in entry["err"]):
            self.tried_again.add(key)

    def _take_search(self, text: str, entry: Object) -> None:
        """A search for victims is for the pod that its first line names."""
        if text == _DRY_RUN:
            self._searching = key_of(entry["pod"])
        if self._searching not in self._begun:
            return
        if self._searching in self._done:
            if text == _TARGET:
                self.tried_again.add(self._searching)
            return
        decision = self._open[self._searching]
        if text == _DRY_RUN:
            decision.potential, decision.wanted = entry["potentialNodesNumber"], entry["candidatesNumber"]
        elif text == _CHECKED:
            decision.checked.append(entry["node"])
        elif text == _VICTIMS:
            decision.candidates.setdefault(entry["node"], []).extend(key_of(each) for each in entry["pods"])
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
        if text in (_HINTED, _HINT_REFUSED):
            decision.hinted = text == _HINTED
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
    """The "namespace/name" of a pod in the log, or of a pod's metadata; the name of a node."""
    namespace = reference.get("namespace")
    return f"{namespace}/{reference['name']}" if namespace else reference["name"]
