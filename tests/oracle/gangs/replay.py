"""Scenarios of gangs through bayplan's rounds, without a queue, an API server or time.

Whoever can be tried is tried after each step, and at a rest all are, until nobody finds a place any more. Of a queue so
much is made up here: a gated member holds its group, and a group waits for its object and its least number of members.
"""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tests.oracle.gangs.recording import GroupState, Outcome, PodState, Run
from tests.oracle.gangs.scenario import CLASSES, NEVER, Change, Create, Delete, Object, Rest, Scenario, Step
from tests.oracle.gangs.stage import CONFIGURATION, GENERIC_WORKLOAD
from tests.oracle.replay import loaded

from bayplan.api.objects import Node, Pod
from bayplan.api.workload_objects import PodDisruptionBudget, PodGroup
from bayplan.cache.cache import Cache
from bayplan.cache.group_members import GroupSource, PodGroupKey
from bayplan.cache.pod_info import PodInfo
from bayplan.config.feature_gates import parse_feature_gates
from bayplan.framework.nominator import Nominator
from bayplan.groups.pod_groups import PodGroups, read_pod_group
from bayplan.plugins.registry import build_frameworks
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.decision import FitError
from bayplan.scheduler.emptied_nodes import KeptEmptiedNodes
from bayplan.scheduler.pod_group_preemption import PodGroupPreemption
from bayplan.scheduler.pod_group_round import PodGroupRound, RoundStatus
from bayplan.simulate.admission import Admission
from bayplan.simulate.documents import Decoder

NAMESPACE = "gangs"
_NODE, _POD, _GROUP = Decoder(Node), Decoder(Pod), Decoder(PodGroup)
_BUDGET = Decoder(PodDisruptionBudget)
_NOTHING = ("", "", "")
_HELD = ("False", "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")
_SCHEDULED = GroupState("True", "Scheduled", "", was_true=True)


@dataclass
class _Waiting:
    """A pod without a node, and what it was told last."""

    queued: QueuedPodInfo
    is_held: bool
    told: tuple[str, str, str] = _NOTHING


class Replay:
    """Plays one scenario before bayplan's rounds."""

    def __init__(self, scenario: Scenario, gates: tuple[str, ...] = ()) -> None:
        self._scenario = scenario
        self._cache = Cache()
        self._groups = PodGroups(self._cache)
        self._groups.serve(GroupSource.NATIVE)
        nominator, listers = Nominator(), self._cache.listers
        self._nominator = nominator
        on = parse_feature_gates([f"{gate}=true" for gate in (GENERIC_WORKLOAD, *gates)])
        configuration = replace(loaded(json.dumps(CONFIGURATION)), feature_gates=on)
        self._frameworks = build_frameworks(configuration, self._cache.nodes, listers, nominator, groups=self._groups)
        for kind in listers.wanted():
            listers.of(kind).synced = True
        self._cycle = SchedulingCycle(self._cache.nodes, nominator, self._frameworks.values())
        self._admission = Admission(())
        self._sequence = itertools.count()
        self._documents: dict[tuple[str, str], Object] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._nodes: dict[str, str] = {}
        self._conditions: dict[str, GroupState] = {}
        self._tried: dict[PodGroupKey, frozenset[str]] = {}

    def play(self) -> Run:
        """Returns the outcome at each rest; it has no Events."""
        outcomes = []
        for step in self._scenario.steps:
            if isinstance(step, Rest):
                while self._try_all(everybody=True):
                    pass
                outcomes.append(self._outcome())
            else:
                self._take(step)
                self._try_all(everybody=False)
        return tuple(outcomes)

    def _take(self, step: Step) -> None:
        match step:
            case Create(resource, document):
                self._set(resource, document["metadata"]["name"], document)
            case Change(resource, name, change, _):
                self._set(resource, name, _merged(self._documents[resource, name], change))
            case Delete("podgroups", name, finalizers=False):
                ending = {"metadata": {"deletionTimestamp": "2026-06-01T00:00:00Z"}}
                self._set("podgroups", name, _merged(self._documents["podgroups", name], ending))
            case Delete(resource, name):
                self._delete(resource, name)

    def _set(self, resource: str, name: str, document: Object) -> None:
        self._documents[resource, name] = document
        if resource == "nodes":
            self._cache.set_node(self._admission.node(_NODE(document)))
        elif resource == "podgroups":
            group = read_pod_group(_GROUP(_in_namespace(_with_priority(document))), GroupSource.NATIVE)
            self._groups.set(group)
            self._conditions.setdefault(name, GroupState())
        elif resource == "pods":
            self._set_pod(name, _with_priority(document))
        elif resource == "poddisruptionbudgets":
            self._cache.listers.of(PodDisruptionBudget).set(_BUDGET(_in_namespace(document)))
        else:
            assert resource == "namespaces"

    def _set_pod(self, name: str, document: Object) -> None:
        node = document["spec"].get("nodeName", "") or self._nodes.get(name, "")
        spec = {**document["spec"], "nodeName": node} if node else document["spec"]
        pod = PodInfo(self._admission.pod(_POD(_in_namespace({**document, "spec": spec}))))
        if node:
            self._nodes[name] = node
            self._cache.set_pod(pod)
            return
        is_held = bool(spec.get("schedulingGates"))
        told = _HELD if is_held else self._waiting[name].told if name in self._waiting else _NOTHING
        self._waiting[name] = _Waiting(QueuedPodInfo(pod, 0.0, next(self._sequence)), is_held, told)

    def _delete(self, resource: str, name: str) -> None:
        del self._documents[resource, name]
        if resource == "nodes":
            self._cache.remove_node(name)
        elif resource == "podgroups":
            self._groups.remove(PodGroupKey(GroupSource.NATIVE, NAMESPACE, name))
            del self._conditions[name]
        elif self._waiting.pop(name, None) is None:
            del self._nodes[name]
            self._cache.remove_pod(_uid(name))

    def _try_all(self, *, everybody: bool) -> bool:
        """Tries groups and single pods, the most important and then the oldest first; whether anybody found a place.

        Without `everybody`, only those that were not tried with the members they have.
        """
        found = False
        for key, members in self._entities():
            names = frozenset(each.uid for each in members)
            if everybody or self._tried.get(key) != names:
                self._tried[key] = names
                found |= self._try_group(key, members) if key.name else self._try_single(members[0])
        return found

    def _entities(self) -> list[tuple[PodGroupKey, list[QueuedPodInfo]]]:
        """What may be tried; a single pod is a group without a name."""
        members: dict[PodGroupKey, list[_Waiting]] = {}
        for name, each in self._waiting.items():
            if each.queued.profile in self._frameworks:
                key = self._groups.of(each.queued.pod_info) or PodGroupKey(GroupSource.NATIVE, name, "")
                members.setdefault(key, []).append(each)
        ready = []
        for key, waiting in members.items():
            group = self._groups.get(key)
            if any(each.is_held for each in waiting) or (group is None and key.name):
                continue
            if group is not None and len(waiting) + len(self._groups.placed(key)) < group.least:
                continue
            queued = sorted((each.queued for each in waiting), key=_order)
            priority = queued[0].pod_info.priority if group is None else group.priority or 0
            ready.append((-priority, key, queued))
        ready.sort(key=lambda each: each[0])
        return [(key, queued) for _, key, queued in ready]

    def _try_single(self, queued: QueuedPodInfo) -> bool:
        outcome = self._cycle.schedule(queued.pod_info, self._frameworks[queued.profile]).outcome
        if isinstance(outcome, FitError):
            self._waiting[queued.pod_info.name].told = ("False", "Unschedulable", outcome.message)
            return self._evict(
                outcome.post_filter.victims, {queued.uid: outcome.post_filter.nominated_node_name or ""}, [queued]
            )
        self._cache.assume_pod(queued.pod_info, outcome.node_name)
        self._bind(queued, outcome.node_name)
        return True

    def _try_group(self, key: PodGroupKey, members: list[QueuedPodInfo]) -> bool:
        group = self._groups.get(key)
        assert group is not None
        kept = KeptEmptiedNodes(self._cache, self._groups, self._nominator)
        preemption = PodGroupPreemption(group, members, kept, self._frameworks, lambda: 0.0)
        result = PodGroupRound(
            group,
            members,
            cache=self._cache,
            cycle=self._cycle,
            frameworks=self._frameworks,
            clock=lambda: 0.0,
            preempt=preemption.run,
        ).run()
        for member in result.members:
            if member.placement is not None:
                self._bind(member.queued, member.placement.node_name)
            else:
                reason = "SchedulerError" if member.is_error else "Unschedulable"
                self._waiting[member.queued.pod_info.name].told = ("False", reason, member.message)
        for each in members:
            each.attempts += 1
        if result.status is RoundStatus.SCHEDULED:
            self._conditions[key.name] = _SCHEDULED
        elif self._conditions[key.name] != _SCHEDULED:
            reason = "SchedulerError" if result.status is RoundStatus.ERROR else "Unschedulable"
            self._conditions[key.name] = GroupState("False", reason, result.message)
        if result.preemption is not None and result.preemption.victims:
            return self._evict(result.preemption.victims, result.preemption.nodes, members)
        return result.status is RoundStatus.SCHEDULED

    def _evict(self, victims: Sequence[PodInfo], nodes: Mapping[str, str], members: Sequence[QueuedPodInfo]) -> bool:
        """Ends victims at once, and keeps their room; whether there were any."""
        for victim in victims:
            self._delete("pods", victim.name)
        for queued in members if victims else ():
            if queued.uid in nodes:
                self._nominator.add(queued.pod_info, nodes[queued.uid])
        return bool(victims)

    def _bind(self, queued: QueuedPodInfo, node: str) -> None:
        name = queued.pod_info.name
        del self._waiting[name]
        self._nominator.delete(queued.uid)
        self._nodes[name] = node
        self._set("pods", name, self._documents["pods", name])

    def _outcome(self) -> Outcome:
        pods = {name: PodState(node) for name, node in self._nodes.items()}
        pods |= {name: PodState("", *map(_as_recorded, each.told)) for name, each in self._waiting.items()}
        # A scenario looks at its own namespace alone.
        ours = {name: state for name, state in pods.items() if self._is_ours("pods", name)}
        groups = {
            name: replace(state, message=_as_recorded(state.message))
            for name, state in self._conditions.items()
            if self._is_ours("podgroups", name)
        }
        return Outcome(ours, groups)

    def _is_ours(self, resource: str, name: str) -> bool:
        return not self._documents[resource, name]["metadata"].get("namespace")


def _order(queued: QueuedPodInfo) -> tuple[int, int, int]:
    return -queued.pod_info.priority, -queued.attempts, queued.sequence


def _as_recorded(text: str) -> str:
    return text.replace(f"{NAMESPACE}/", "NAMESPACE/")


def _uid(name: str) -> str:
    return f"uid-{name}"


def _in_namespace(document: Object) -> Object:
    metadata = document["metadata"]
    placed = {"namespace": metadata.get("namespace") or NAMESPACE, "uid": _uid(metadata["name"])}
    return {**document, "metadata": {**metadata, **placed}}


def _with_priority(document: Object) -> Object:
    """The pod or group with what admission makes of its class."""
    name = document["spec"].get("priorityClassName")
    if not name:
        return document
    spec = {key: value for key, value in document["spec"].items() if key != "priorityClassName"}
    priority = CLASSES["high"] if name == NEVER else CLASSES[name]
    policy = "Never" if name == NEVER else "PreemptLowerPriority"
    return {**document, "spec": {**spec, "priority": priority, "preemptionPolicy": policy}}


def _merged(document: Object, change: Object) -> Object:
    """The document with a merge patch: objects field by field, everything else as a whole, null takes away."""
    found = dict(document)
    for name, value in change.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = _merged(found.get(name, {}), value) if isinstance(value, dict) else value
    return found
