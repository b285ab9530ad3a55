"""Stored cases through the engine, as `bayplan simulate --explain` runs them."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.oracle.case import Case, Decision, Object

from bayplan.api.kinds import RESOURCES
from bayplan.api.objects import Node, Pod
from bayplan.cache.cache import Cache
from bayplan.cache.pod_info import PodInfo
from bayplan.config.load import load_configuration
from bayplan.config.types import SchedulerConfiguration
from bayplan.plugins.registry import build_frameworks
from bayplan.scheduler.cycle import FitError, Placement, SchedulingCycle
from bayplan.simulate.admission import Admission, looked_up
from bayplan.simulate.documents import Decoder

_DECODERS = {resource: Decoder(resource.type) for resource in RESOURCES}
_RESOURCES = {resource.kind: resource for resource in RESOURCES}
_NODE, _POD = Decoder(Node), Decoder(Pod)


def load(document: Object) -> SchedulerConfiguration:
    """The configuration as bayplan loads it from a file; the same document is read once."""
    return _load(json.dumps(document))


@cache
def _load(text: str) -> SchedulerConfiguration:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(text)
        return load_configuration(path)


def replay(case: Case, configuration: SchedulerConfiguration) -> Iterator[tuple[str, Decision]]:
    """The engine's decision about every incoming pod, by name.

    A placed pod is counted on the node that kube-scheduler chose, as both may choose differently among the best.
    """
    cluster = Cache()
    admission = Admission(())
    frameworks = build_frameworks(configuration, cluster.nodes, cluster.listers)
    for each in case.scene.objects:
        resource = _RESOURCES[each["kind"]]
        cluster.listers.of(resource.type).set(looked_up(_DECODERS[resource](each), resource))
    for lister in cluster.listers.wanted():
        cluster.listers.of(lister).synced = True
    for node in case.scene.nodes:
        cluster.set_node(admission.node(_NODE(node)))
    for pod in case.scene.placed:
        cluster.set_pod(PodInfo(admission.pod(_POD(pod))))
    cycle = SchedulingCycle(cluster.nodes)
    for pod, decided in zip(case.scene.incoming, case.decisions, strict=True):
        info = PodInfo(admission.pod(_POD(pod)))
        framework = frameworks[info.pod.spec.scheduler_name]
        try:
            outcome = cycle.schedule(info, framework, explain=True)
        except Exception as error:  # noqa: BLE001 - the loop turns whatever a plugin raises into a message
            yield info.key, Decision(message=str(error), error=True)
        else:
            yield info.key, _decision(outcome)
        if decided.node is not None:
            for plugin in framework.reserves:
                plugin.reserve({}, info, decided.node)
            cluster.assume_pod(info, decided.node)


def _decision(outcome: Placement | FitError) -> Decision:
    if isinstance(outcome, FitError):
        return Decision(
            message=outcome.message,
            nominated=outcome.nominated_node_name,
            victims=sorted(victim.key for victim in outcome.victims),
        )
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
    if expected.feasible != found.feasible:
        lines = [
            f"feasible nodes: {title} {sorted(nodes)}"
            for title, nodes in (
                ("only kube-scheduler has", set(expected.feasible) - set(found.feasible)),
                ("only bayplan has", set(found.feasible) - set(expected.feasible)),
            )
            if nodes
        ]
        return [*lines, *_text("message", expected.message, found.message)]
    lines = []
    for plugin in sorted({*expected.scores, *found.scores}):
        lines += _columns(plugin, expected.feasible, expected.scores.get(plugin), found.scores.get(plugin))
    lines += _columns("total", expected.feasible, expected.totals, found.totals)
    lines += _text("message", expected.message, found.message)
    lines += _text("cycle failed", expected.error, found.error)
    lines += _text("nominated node", expected.nominated, found.nominated)
    lines += _text("victims", expected.victims, found.victims)
    if found.totals:
        best = {
            name
            for name, total in zip(expected.feasible, expected.totals, strict=True)
            if total == max(expected.totals)
        }
        if found.node not in best or expected.node not in best:
            lines.append(f"node: kube-scheduler {expected.node}, bayplan {found.node}, best {sorted(best)}")
    else:
        lines += _text("node", expected.node, found.node)
    return lines


def _text(title: str, expected: object, found: object) -> list[str]:
    return [] if expected == found else [f"{title}: kube-scheduler {expected!r}", f"{title}: bayplan {found!r}"]


def _columns(title: str, nodes: list[str], expected: list[int] | None, found: list[int] | None) -> list[str]:
    if expected == found:
        return []
    if not expected or not found:
        return _text(title, expected or None, found or None)
    rows = zip(nodes, expected, found, strict=True)
    shown = [f"{node} {theirs} {ours}" for node, theirs, ours in rows if theirs != ours]
    return [f"{title}: node, kube-scheduler's score, bayplan's: {', '.join(shown)}"]
