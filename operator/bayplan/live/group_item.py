"""What is told of the pod group of a pod that waits, by a round on a copy of the cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from bayplan.cache.cache import Cache
from bayplan.cache.group_members import PodGroupKey
from bayplan.cache.pod_info import PodInfo
from bayplan.explain.explain import Explainer
from bayplan.explain.explanation import Explanation
from bayplan.framework.runtime import Framework
from bayplan.groups.pod_groups import PodGroups
from bayplan.live.answers import GroupItem, PodName
from bayplan.queue.nominator import Nominator
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.decision import Decision, FitError
from bayplan.scheduler.pod_group_preemption import PodGroupPreemption
from bayplan.scheduler.pod_group_round import PodGroupRound


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

    `waiting` are the members that are not on nodes. All of them are tried, the most important first, where a real round
    ends as soon as too few are left.
    """
    group = groups.get(key)
    gated = next((PodName(each.namespace, each.name) for each in waiting if each.pod.spec.scheduling_gates), None)
    on_nodes = len(cache.members.of(key))
    item = GroupItem(str(key.source), key.namespace, key.name, on_nodes=on_nodes, waiting=len(waiting), gated=gated)
    if group is None:
        return item
    item = structs.replace(item, least=group.least, fit=on_nodes)
    if gated is not None or on_nodes + len(waiting) < group.least:
        return item
    without: list[tuple[PodInfo, Explanation]] = []
    explainer = Explainer(cache.nodes)

    def decided(decision: Decision) -> None:
        if isinstance(decision.outcome, FitError) and not without:
            without.append((decision.pod, explainer.explain(decision)))

    ordered = sorted(waiting, key=lambda pod: (-pod.priority, pod.name))
    members = [QueuedPodInfo(pod, 0.0, number) for number, pod in enumerate(ordered)]
    preemption = PodGroupPreemption(group, members, cache, groups, frameworks, nominator, clock=lambda: 0.0)
    trial = PodGroupRound(
        replace(group, least=1), members, cache, cycle, frameworks, clock=lambda: 0.0, decided=decided
    )
    result = trial.run()
    fit = on_nodes + sum(each.placement is not None for each in result.members)
    if fit >= group.least:
        return structs.replace(item, fit=fit)
    trial.undo()
    real = PodGroupRound(group, members, cache, cycle, frameworks, clock=lambda: 0.0, preempt=preemption.run).run()
    item = structs.replace(item, fit=fit)
    if real.preemption is not None:
        evicts = [PodName(each.namespace, each.name) for each in real.preemption.victims]
        item = structs.replace(item, preemption=real.preemption.text, evicts=evicts)
    if not without:
        return structs.replace(item, message=result.message)
    first, why = without[0]
    return structs.replace(item, first_without=PodName(first.namespace, first.name), missing=why)
