"""Why a pod is where it is, or nowhere, by the engine that schedules, on a copy of the cluster."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final

from msgspec import structs

from bayplan.api.live_paths import RefusedQuestionError
from bayplan.api.meta_objects import format_time
from bayplan.api.objects import Pod
from bayplan.cache.cache import Cache
from bayplan.cache.group_members import PodGroupKey
from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.filter_round import FilterError
from bayplan.explain.explain import Explainer
from bayplan.explain.explanation import Explanation
from bayplan.framework.nominator import Nominator
from bayplan.framework.runtime import Framework
from bayplan.groups.pod_groups import PodGroups
from bayplan.live.answers import (
    AttemptItem,
    DecisionItem,
    ExplanationAnswer,
    GroupItem,
    NodeTotal,
    Nomination,
    PodName,
    WakingEvent,
)
from bayplan.live.cluster_view import ClusterCopy, WaitingPodsCopy
from bayplan.plugins.registry import build_frameworks
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.decision import Decision, FitError, Outcome
from bayplan.scheduler.emptied_nodes import KeptEmptiedNodes
from bayplan.scheduler.pod_group_preemption import PodGroupPreemption
from bayplan.scheduler.pod_group_round import PodGroupRound
from bayplan.scheduler.recent_decisions import FailedAttempt, RecentDecision
from bayplan.simulate.released_claims import give_back

_MOST_EVENTS: Final = 32


@dataclass(frozen=True, slots=True)
class FoundPod:
    """A pod that is asked about, and where it is: on a node, in the queue, or neither while it is tried."""

    pod: PodInfo
    node: str | None
    queued: QueuedPodInfo | None


def find(cache: Cache, waiting: WaitingPodsCopy, namespace: str, name: str) -> FoundPod:
    """Return the pod of that name, which waits, is on a node, or is in flight between the two.

    Raises:
        RefusedQuestionError: there is none among those that wait here and those on nodes.
    """
    queued = waiting.find(namespace, name)
    if queued is not None:
        return FoundPod(queued.pod_info, None, queued)
    for row in cache.nodes.rows().tolist():
        for pod in cache.nodes.pods[row].values():
            if pod.name == name and pod.namespace == namespace:
                return FoundPod(pod, cache.nodes.names[row], None)
    for pod in waiting.in_flight:
        if pod.name == name and pod.namespace == namespace:
            return FoundPod(pod, None, None)
    text = (
        f"there is no pod {namespace}/{name} on a node, nor one that waits for this scheduler; those that wait for "
        "another one are not known here"
    )
    raise RefusedQuestionError(HTTPStatus.NOT_FOUND, text)


def engine_of(
    copy: ClusterCopy, cache: Cache, nominator: Nominator, profile: str
) -> tuple[SchedulingCycle, Mapping[str, Framework]]:
    """Make an engine for the copy, which has such a profile among its own.

    Raises:
        RefusedQuestionError: there is no such profile.
    """
    frameworks = build_frameworks(copy.configuration, cache.nodes, cache.listers, nominator)
    if profile not in frameworks:
        ours = ", ".join(frameworks)
        text = f"the pod is for the scheduler {profile[:253]!a}, and this one schedules for {ours}"
        raise RefusedQuestionError(HTTPStatus.NOT_FOUND, text)
    return SchedulingCycle(cache.nodes, nominator, frameworks.values()), frameworks


def explanation_answer(
    copy: ClusterCopy, cache: Cache, found: FoundPod, waiting: WaitingPodsCopy, *, state: str
) -> ExplanationAnswer:
    """Work out the answer; `cache` is the copy's, and is used up.

    A pod on a node is taken off it first: what is told is where it would go now.
    """
    pod, groups = found.pod, waiting.queue.groups
    nominated_for, decided = waiting.queue.nominator.age(pod.uid), waiting.recent.last_on(pod.uid)
    if found.node is not None:
        cache.remove_pod(pod.uid)
        give_back(cache.listers, pod)
    nominator = copy.nominator()
    profile = pod.pod.spec.scheduler_name
    cycle, frameworks = engine_of(copy, cache, nominator, profile)
    framework = frameworks[profile]
    asked = _anew(pod)
    key = None if found.node is not None else groups.of(pod)
    # Of a pod that waits with its group, room is made by the group or not at all.
    outcome: Outcome | None = None
    try:
        now = cycle.schedule(asked, framework) if key is None else cycle.schedule_member(asked, framework)
    except FilterError as error:
        message: str | None = str(error)
        explanation = Explanation(len(cache.nodes), 0, failed=str(error))
    else:
        outcome = now.outcome
        message = outcome.message if isinstance(outcome, FitError) else None
        explanation = Explainer(cache.nodes).explain(now)
    item, ahead = (None, []) if found.queued is None else waiting.of_pod(found.queued)
    node = nominator.nominated_node(pod.uid)
    if item is not None:
        rejectors = item.rejected_by
    else:
        rejectors = sorted(outcome.diagnosis.rejector_plugins) if isinstance(outcome, FitError) else []
    group = None
    if key is not None:
        members = waiting.members_of(key)
        unplaced = [_anew(each) for each in members if each.pod.spec.scheduler_name in frameworks]
        unplaced = [each for each in unplaced if cache.node_of(each.uid) is None]
        unplaced.sort(key=lambda each: each.uid != pod.uid)
        group = group_item(key, groups, unplaced, cache=cache, cycle=cycle, frameworks=frameworks, nominator=nominator)
    return ExplanationAnswer(
        namespace=pod.namespace,
        name=pod.name,
        scheduler_name=profile,
        state=state,
        node=found.node,
        queue=item,
        ahead=ahead,
        woken_by=[] if found.node is not None else _woken_by(framework, rejectors),
        nomination=None if node is None or nominated_for is None else Nomination(node, round(nominated_for, 1)),
        attempts=[_attempt(each) for each in waiting.recent.attempts_on(pod.uid)],
        message=message,
        explanation=explanation,
        decision=None if decided is None else decision_item(*decided),
        scheduled_at=_scheduled_at(pod.pod),
        group=group,
    )


def decision_item(number: int, decision: RecentDecision) -> DecisionItem:
    """Return the decision of that number as it is told."""
    second = decision.runner_up
    return DecisionItem(
        seq=number,
        time=format_time(decision.time),
        namespace=decision.namespace,
        name=decision.name,
        node=decision.node,
        score=decision.score,
        runner_up=None if second is None else NodeTotal(*second),
        feasible=decision.feasible,
        evaluated=decision.evaluated,
        milliseconds=round(decision.seconds * 1000, 3),
        message=decision.message,
        preempted=[PodName(*each) for each in decision.preempted],
    )


def _anew(pod: PodInfo) -> PodInfo:
    # What is kept with a pod of its shape belongs to the engine that schedules, and a node that it names is the answer
    # of an earlier decision.
    return pod.with_spec(node_name="")


def _scheduled_at(pod: Pod) -> str | None:
    conditions = pod.status.conditions or ()
    return next((each.last_transition_time for each in conditions if each.type == "PodScheduled"), None)


def _attempt(attempt: FailedAttempt) -> AttemptItem:
    return AttemptItem(format_time(attempt.time), attempt.message, round(attempt.seconds * 1000, 3))


def _woken_by(framework: Framework, rejectors: Iterable[str]) -> list[WakingEvent]:
    registered = framework.registrations()
    events = [
        WakingEvent(registration.event.label, plugin)
        for plugin in rejectors
        for registration in registered.get(plugin, ())
    ]
    return events[:_MOST_EVENTS]


def group_item(
    key: PodGroupKey,
    groups: PodGroups,
    waiting: Sequence[PodInfo],
    *,
    cache: Cache,
    cycle: SchedulingCycle,
    frameworks: Mapping[str, Framework],
    nominator: Nominator,
) -> GroupItem:
    """Count how many of the group fit now, and say who is the first that does not and why; `cache` is used up.

    Where too few do, it is said whom the group would evict, or why nobody.

    `waiting` are the members that are not on nodes, the pod that is asked about before others. All of them are tried,
    the most important first, where a real round ends as soon as too few are left.
    """
    group = groups.get(key)
    gated = next((each for each in waiting if each.pod.spec.scheduling_gates), None)
    on_nodes = len(cache.members.of(key))
    item = GroupItem(str(key.source), key.namespace, key.name, on_nodes=on_nodes, waiting=len(waiting))
    if gated is not None:
        gates = [each.name for each in gated.pod.spec.scheduling_gates or ()]
        item = structs.replace(item, gated=PodName(gated.namespace, gated.name), gates=gates)
    if group is None:
        return item
    item = structs.replace(item, least=group.least, fit=on_nodes)
    if gated is not None or on_nodes + len(waiting) < group.least:
        return item
    without: list[tuple[PodInfo, Explanation]] = []
    tried: set[str] = set()
    explainer = Explainer(cache.nodes)

    def decided(decision: Decision) -> None:
        tried.add(decision.pod.uid)
        if isinstance(decision.outcome, FitError) and not without:
            without.append((decision.pod, explainer.explain(decision)))

    ordered = sorted(waiting, key=lambda pod: (-pod.priority, pod.name))
    members = [QueuedPodInfo(pod, 0.0, number) for number, pod in enumerate(ordered)]
    kept = KeptEmptiedNodes(cache, groups, nominator)
    preemption = PodGroupPreemption(group, members, kept, frameworks, clock=lambda: 0.0)
    trial = PodGroupRound(
        replace(group, least=1), members, cache, cycle, frameworks, clock=lambda: 0.0, decided=decided
    )
    result = trial.run()
    fit = on_nodes + sum(each.placement is not None for each in result.members)
    if fit >= group.least:
        return structs.replace(item, fit=fit)
    trial.undo()
    real = PodGroupRound(group, members, cache, cycle, frameworks, clock=lambda: 0.0, preempt=preemption.run).run()
    item = structs.replace(item, fit=fit if tried else None)
    if real.preemption is not None:
        evicts = [PodName(each.namespace, each.name) for each in real.preemption.victims]
        item = structs.replace(item, preemption=real.preemption.text, evicts=evicts)
    if not without:
        return structs.replace(item, message=result.message)
    first, why = without[0]
    return structs.replace(item, first_without=PodName(first.namespace, first.name), missing=why)
