"""Stored cases through the engine, as `bayplan simulate --explain` runs them."""

import json
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.oracle.case import Decision, Object, Recorded

from bayplan.api.kinds import RESOURCES
from bayplan.api.objects import Node, Pod
from bayplan.cache.cache import Cache
from bayplan.cache.pod_info import PodInfo
from bayplan.config.load import load_configuration
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


@cache
def _load(text: str) -> SchedulerConfiguration:
    """The configuration as bayplan loads it from a file; the same document is read once."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(text)
        return load_configuration(path)


class Replay:
    """A recorded cluster in the engine, which decides about one incoming pod after the other.

    The cluster goes on as kube-scheduler decided, as both may choose differently among the best.
    """

    def __init__(self, recorded: Recorded) -> None:
        self._case = recorded.case
        self._configuration = _load(json.dumps(recorded.document))
        self._cache = Cache()
        self._admission = Admission(())
        self._nominator = Nominator()
        self._documents: dict[str, Object] = {}
        self._frameworks = self._build(self._configuration)
        self._cycle = SchedulingCycle(self._cache.nodes, self._nominator)
        scene, listers = self._case.scene, self._cache.listers
        for each in scene.objects:
            resource = _RESOURCES[each["kind"]]
            listers.of(resource.type).set(looked_up(_DECODERS[resource](each), resource))
        for kind in listers.wanted():
            listers.of(kind).synced = True
        for node in scene.nodes:
            self._cache.set_node(self._admission.node(_NODE(node)))
        for pod in scene.placed:
            self._place(pod)

    def differences(self) -> Iterator[str]:
        """What differs about each pod, a line each."""
        for document, decided in zip(self._case.scene.incoming, self._case.decisions, strict=True):
            pod = PodInfo(self._admission.pod(_POD(document)))
            if pod.pod.status.nominated_node_name:
                self._nominator.add(pod, pod.pod.status.nominated_node_name)
            if "schedulingGates" in document["spec"]:
                continue
            yield from (f"{pod.key}: {line}" for line in self._decide(pod, decided))
            self._follow(pod, document, decided)

    def _decide(self, pod: PodInfo, decided: Decision) -> list[str]:
        framework = self._frameworks[pod.pod.spec.scheduler_name]
        try:
            outcome = everywhere = self._cycle.schedule(pod, framework, explain=True)
            if decided.wanted < decided.potential:
                everywhere = self._cycle.schedule(pod, self._unlimited)
        except Exception as error:  # noqa: BLE001 - the loop turns whatever a plugin raises into a message
            return differences(decided, Decision(message=str(error), error=True))
        lines = differences(decided, _decision(outcome))
        if isinstance(outcome, FitError):
            assert isinstance(everywhere, FitError)
            lines += _preemption_differences(decided, outcome, everywhere.candidates)
        return lines

    def _follow(self, pod: PodInfo, document: Object, decided: Decision) -> None:
        self._nominator.delete(pod.uid)
        if decided.node is not None:
            self._documents[pod.key] = {**document, "spec": {**document["spec"], "nodeName": decided.node}}
            for plugin in self._frameworks[pod.pod.spec.scheduler_name].reserves:
                plugin.reserve({}, pod, decided.node)
            self._cache.assume_pod(pod, decided.node)
        elif decided.nominated is not None:
            for victim in decided.candidates[decided.nominated]:
                self._end(victim)
            for other in self._nominator.nominated_pods_for_node(decided.nominated):
                if other.priority < pod.priority:
                    self._nominator.delete(other.uid)
            self._nominator.add(pod, decided.nominated)

    def _end(self, victim: str) -> None:
        document = deepcopy(self._documents[victim])
        if "deletionTimestamp" not in document["metadata"]:
            document["metadata"]["deletionTimestamp"] = "2026-06-01T00:00:00Z"
            document.setdefault("status", {})["conditions"] = [_PREEMPTED]
        self._place(document)

    def _place(self, document: Object) -> None:
        pod = PodInfo(self._admission.pod(_POD(document)))
        self._documents[pod.key] = document
        self._cache.set_pod(pod)

    def _build(self, configuration: SchedulerConfiguration) -> dict[str, Framework]:
        return build_frameworks(configuration, self._cache.nodes, self._cache.listers, self._nominator)

    @cached_property
    def _unlimited(self) -> Framework:
        """The framework that looks at every node for candidates."""
        (profile,) = self._configuration.profiles
        args = profile.plugin_config["DefaultPreemption"]
        assert isinstance(args, DefaultPreemptionArgs)
        config = {**profile.plugin_config, "DefaultPreemption": replace(args, min_candidate_nodes_percentage=100)}
        profiles = (replace(profile, plugin_config=config),)
        (framework,) = self._build(replace(self._configuration, profiles=profiles)).values()
        return framework


def _decision(outcome: Placement | FitError) -> Decision:
    if isinstance(outcome, FitError):
        return Decision(message=outcome.message)
    trace = outcome.trace
    assert trace is not None
    feasible = sorted(name for name, verdict in trace.items() if verdict.rejected_by is None)
    decision = Decision(node=outcome.node_name, feasible=feasible)
    if len(feasible) > 1:
        plugins = trace[feasible[0]].scores
        decision.scores = {plugin: [trace[name].scores[plugin] for name in feasible] for plugin in plugins}
        decision.totals = [trace[name].score for name in feasible]
    return decision


def differences(expected: Decision, found: Decision) -> list[str]:
    """What differs, a line each; nothing when the decisions agree and the node is one of the best."""
    lines = _differ("message", expected.message, found.message)
    lines += _differ("cycle failed", expected.error, found.error)
    if expected.feasible != found.feasible:
        for title, nodes in (
            ("only kube-scheduler has", set(expected.feasible) - set(found.feasible)),
            ("only bayplan has", set(found.feasible) - set(expected.feasible)),
        ):
            lines += [f"feasible nodes: {title} {sorted(nodes)}"] if nodes else []
    elif len(expected.feasible) < 2:
        lines += _differ("node", expected.node, found.node)
    elif expected.totals:
        lines += _score_differences(expected, found)
    # Else there are no scores, as the stored preemptions were recorded without them.
    return lines


def _score_differences(expected: Decision, found: Decision) -> Iterator[str]:
    nodes = expected.feasible
    for plugin in sorted({*expected.scores, *found.scores}):
        yield from _columns(plugin, nodes, expected.scores.get(plugin), found.scores.get(plugin))
    yield from _columns("total", nodes, expected.totals, found.totals)
    best = {name for name, total in zip(nodes, expected.totals, strict=True) if total == max(expected.totals)}
    if found.node not in best or expected.node not in best:
        yield f"node: kube-scheduler {expected.node}, bayplan {found.node}, best {sorted(best)}"


def _columns(title: str, nodes: list[str], expected: list[int] | None, found: list[int] | None) -> Iterator[str]:
    if not expected or not found:
        yield from _differ(title, expected or None, found or None)
    elif expected != found:
        rows = zip(nodes, expected, found, strict=True)
        shown = [f"{node} {theirs} {ours}" for node, theirs, ours in rows if theirs != ours]
        yield f"{title}: node, kube-scheduler's score, bayplan's: {', '.join(shown)}"


def _preemption_differences(decided: Decision, ours: FitError, everywhere: Sequence[Candidate]) -> Iterator[str]:
    """What differs in victims and nominated node; among candidates with equal criteria either may choose as it likes.

    `everywhere` are our candidates on all nodes, and those of `ours` on as many as are looked at when configured so.
    """
    found = {each.node_name: each for each in everywhere}
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


def _differ(title: str, theirs: object, ours: object) -> list[str]:
    return [] if theirs == ours else [f"{title}: kube-scheduler {theirs!r}", f"{title}: bayplan {ours!r}"]
