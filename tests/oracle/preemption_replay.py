"""Stored preemptions through the engine, one preemptor after the other."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cached_property

from tests.oracle.case import Object
from tests.oracle.preemption_case import PreemptionCase, PreemptionDecision

from bayplan.api.kinds import RESOURCES
from bayplan.api.objects import Node, Pod
from bayplan.cache.cache import Cache
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import DefaultPreemptionArgs, SchedulerConfiguration
from bayplan.framework.candidate import Candidate
from bayplan.framework.runtime import Framework
from bayplan.plugins.registry import build_frameworks
from bayplan.queue.nominator import Nominator
from bayplan.scheduler.cycle import FitError, Placement, SchedulingCycle
from bayplan.simulate.admission import Admission, looked_up
from bayplan.simulate.documents import Decoder

_DECODERS = {resource: Decoder(resource.type) for resource in RESOURCES}
_RESOURCES = {resource.kind: resource for resource in RESOURCES}
_NODE, _POD = Decoder(Node), Decoder(Pod)
_PREEMPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


class Replay:
    """A recorded cluster in the engine, asked for its decision as configured and for the candidates on all nodes."""

    def __init__(self, case: PreemptionCase, configuration: SchedulerConfiguration) -> None:
        self._case = case
        self._cache = Cache()
        self._admission = Admission(())
        self._nominator = Nominator()
        for each in case.scene.objects:
            resource = _RESOURCES[each["kind"]]
            self._cache.listers.of(resource.type).set(looked_up(_DECODERS[resource](each), resource))
        for node in case.scene.nodes:
            self._cache.set_node(self._admission.node(_NODE(node)))
        self._documents: dict[str, Object] = {}
        for pod in case.scene.placed:
            self._place(pod)
        self._configuration = configuration
        self._configured = self._framework(configuration)
        for lister in self._cache.listers.wanted():
            self._cache.listers.of(lister).synced = True
        self._cycle = SchedulingCycle(self._cache.nodes, self._nominator)

    @cached_property
    def _unlimited(self) -> Framework:
        return self._framework(_without_limits(self._configuration))

    def _framework(self, configuration: SchedulerConfiguration) -> Framework:
        (framework,) = build_frameworks(configuration, self._cache.nodes, self._cache.listers, self._nominator).values()
        return framework

    def run(self) -> Iterator[tuple[str, list[str]]]:
        """What differs about each pod, by its name; the cluster goes on as kube-scheduler decided."""
        for document, decided in zip(self._case.scene.incoming, self._case.decisions, strict=True):
            pod = PodInfo(self._admission.pod(_POD(document)))
            if "schedulingGates" in document["spec"]:
                self._nominator.add(pod, document["status"]["nominatedNodeName"])
                continue
            if pod.pod.status.nominated_node_name:
                self._nominator.add(pod, pod.pod.status.nominated_node_name)
            yield pod.key, [*self._decide(pod, decided)]
            self._documents[pod.key] = document
            self._follow(pod, decided)

    def _decide(self, pod: PodInfo, decided: PreemptionDecision) -> Iterator[str]:
        try:
            everywhere = ours = self._cycle.schedule(pod, self._configured, explain=True)
            if decided.wanted < decided.potential:
                everywhere = self._cycle.schedule(pod, self._unlimited)
        except Exception as error:  # noqa: BLE001 - the loop turns whatever a plugin raises into a message
            yield from _differ("the cycle fails", decided.message if decided.error else None, str(error))
            return
        yield from _differ("the cycle fails", decided.error, False)
        yield from differences(decided, ours, everywhere)

    def _follow(self, pod: PodInfo, decided: PreemptionDecision) -> None:
        self._nominator.delete(pod.uid)
        if decided.node is not None:
            document = deepcopy(self._documents[pod.key])
            document["spec"]["nodeName"] = decided.node
            self._documents[pod.key] = document
            for plugin in self._configured.reserves:
                plugin.reserve({}, pod, decided.node)
            self._cache.assume_pod(pod, decided.node)
        elif decided.nominated is not None:
            for victim in decided.candidates[decided.nominated]:
                document = deepcopy(self._documents[victim])
                if "deletionTimestamp" not in document["metadata"]:
                    document["metadata"]["deletionTimestamp"] = "2026-06-01T00:00:00Z"
                    document.setdefault("status", {})["conditions"] = [_PREEMPTED]
                self._place(document)
            for other in self._nominator.nominated_pods_for_node(decided.nominated):
                if other.priority < pod.priority:
                    self._nominator.delete(other.uid)
            self._nominator.add(pod, decided.nominated)

    def _place(self, document: Object) -> None:
        pod = PodInfo(self._admission.pod(_POD(document)))
        self._documents[pod.key] = document
        self._cache.set_pod(pod)


def differences(
    decided: PreemptionDecision, ours: Placement | FitError, everywhere: Placement | FitError
) -> Iterator[str]:
    """What differs, a line each; among candidates with equal criteria either may choose as it likes."""
    assert ours.trace is not None
    if isinstance(ours, Placement) or isinstance(everywhere, Placement):
        feasible = sorted(name for name, verdict in ours.trace.items() if verdict.rejected_by is None)
        yield from _differ("feasible nodes", decided.feasible, feasible)
        yield from _differ("message", decided.message, None)
        return
    yield from _differ("feasible nodes", decided.feasible, [])
    yield from _differ("message", decided.message, ours.message)
    found = {each.node_name: each for each in everywhere.candidates}
    checked = [found[name] for name in decided.checked or found if name in found]
    told = {name: sorted(victims) for name, victims in decided.candidates.items()}
    for name in sorted({*told, *(each.node_name for each in checked)}):
        victims = sorted(victim.key for victim in found[name].victims) if name in found else None
        yield from _differ(f"victims on {name}", told.get(name), victims)
    yield from _differ("a node is found", decided.nominated is not None, bool(ours.nominated_node_name))
    if decided.nominated is None or not checked:
        return
    best = _best(checked)
    if decided.nominated not in best:
        yield f"nominated node: kube-scheduler {decided.nominated}, best of those it looked at {best}"
    best = _best(ours.candidates)
    if ours.nominated_node_name not in best:
        yield f"nominated node: bayplan {ours.nominated_node_name}, best of those it looked at {best}"
    if not decided.checked and decided.nominated not in best:
        yield f"nominated node: kube-scheduler {decided.nominated}, bayplan's best {best}"
    enough = min(decided.wanted, len(found))
    if len(ours.candidates) < enough or len(decided.candidates) < enough:
        yield f"candidates: kube-scheduler {len(decided.candidates)}, bayplan {len(ours.candidates)}, enough {enough}"
    chosen = {each.node_name: each.victims for each in ours.candidates}[ours.nominated_node_name or ""]
    yield from _differ("our victims", sorted(each.key for each in chosen), sorted(each.key for each in ours.victims))


def _best(candidates: Sequence[Candidate]) -> list[str]:
    """The nodes that tie for the first place."""
    rank = {each.node_name: (*each.price, -each.latest_start) for each in candidates}
    return sorted(name for name, price in rank.items() if price == min(rank.values()))


def _differ(title: str, theirs: object, ours: object) -> Iterator[str]:
    if theirs != ours:
        yield f"{title}: kube-scheduler {theirs!r}"
        yield f"{title}: bayplan {ours!r}"


def _without_limits(configuration: SchedulerConfiguration) -> SchedulerConfiguration:
    """The same with every node looked at."""
    (profile,) = configuration.profiles
    args = profile.plugin_config["DefaultPreemption"]
    assert isinstance(args, DefaultPreemptionArgs)
    config = {**profile.plugin_config, "DefaultPreemption": replace(args, min_candidate_nodes_percentage=100)}
    return replace(configuration, profiles=(replace(profile, plugin_config=config),))
