"""How many more of a pod fit on a cluster, without evicting anybody."""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from msgspec import UNSET, structs

from bayplan.api.meta_objects import OwnerReference
from bayplan.api.objects import Pod, PodStatus, SchedulingGroup, Volume
from bayplan.cache.group_members import POD_GROUP_LABEL, GroupSource, PodGroupKey
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import PODS
from bayplan.config.plugin_sets import IMPLEMENTED_PLUGINS, OWN_PLUGINS
from bayplan.config.types import PodTopologySpreadArgs, SchedulerConfiguration
from bayplan.framework.runtime import Framework
from bayplan.groups.pod_groups import PodGroup
from bayplan.plugins.extended_resources import ExtendedResources
from bayplan.scheduler.decision import FitError, Outcome, Placement
from bayplan.shown_text import counted
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.report import Capacity
from bayplan.simulate.simulator import Simulator

MAX_COPIES: Final = 1_000_000
"""Most copies of a pod that are placed one after the other."""

_ENOUGH: Final = "is not tried after so many"
_HARD: Final = "DoNotSchedule"
_BY_NODE: Final = IMPLEMENTED_PLUGINS - OWN_PLUGINS
"""Plugins of which is known when copies of a pod matter to each other."""
_Counted = tuple[int, dict[str, int], str | None]
"""How many fit, how many pods each node takes, and why no more do."""


def how_many_fit(
    simulator: Simulator, configuration: SchedulerConfiguration, pod: PodInfo, asked: int | None
) -> Capacity:
    """Return how many copies of `pod` fit beside what the simulation has placed, at most `asked`.

    The simulation has decided about all its pods before. Copies evict nobody, and have no scheduling gates. Where no
    rule makes one copy matter to another but by what it takes of its node, each node is asked for itself, which takes
    as long for millions as for one; otherwise copies are placed one after the other by the engine, and stay on the
    nodes. Of a pod whose gang is not whole, such gangs are counted, each with the fewest pods that it starts with.
    """
    copy = PodInfo(_copy(pod.pod, 0))
    framework = simulator.frameworks[pod.pod.spec.scheduler_name]
    most = sys.maxsize if asked is None else asked
    key = simulator.groups.of(pod)
    group = None if key is None else simulator.groups.get(key)
    if group is not None and group.least <= max(1, len(simulator.groups.placed(group.key))):
        group = None
    if key is None and _is_by_node(simulator, configuration, framework, copy):
        fits, per_node, stopped = _by_node(simulator, framework, copy, most)
    else:
        fits, per_node, stopped = _in_turn(simulator, pod, group, most)
    gates = [each.name for each in pod.pod.spec.scheduling_gates or ()]
    gang_of = UNSET if group is None else group.least
    return Capacity(pod.key, fits, asked, per_node, gates, stopped, gang_of=gang_of)


def capacity_lines(capacity: Capacity) -> list[str]:
    """Return what people are told: the number, how it spreads over nodes, and what is in the way of more."""
    asked = "" if capacity.asked is None else f" of the {capacity.asked:,} asked for"
    what = f"{capacity.fits:,} more of {capacity.pod}"
    if capacity.gang_of is not UNSET:
        what = f"{counted(capacity.fits, 'more gang')} of {capacity.gang_of} like {capacity.pod}"
    lines = [f"Fits:  {what}{asked}, on {counted(len(capacity.per_node), 'node')}"]
    by_count: dict[int, list[str]] = {}
    for node, count in capacity.per_node.items():
        by_count.setdefault(count, []).append(node)
    for count, names in sorted(by_count.items(), reverse=True):
        more = len(names) - 3
        others = f" and {more} other{'s' if more > 1 else ''}" if more > 0 else ""
        lines.append(f"       {count:,} on {', '.join(names[:3])}{others}")
    if capacity.scheduling_gates:
        lines.append(f"       Counted without its scheduling gates: {', '.join(capacity.scheduling_gates)}")
    if capacity.stopped_by is not None:
        lines.append(f"       The next one: {capacity.stopped_by}")
    return lines


def _is_by_node(
    simulator: Simulator, configuration: SchedulerConfiguration, framework: Framework, pod: PodInfo
) -> bool:
    """Whether copies of the pod come into each other's way only by what they take of a node."""
    spec = pod.pod.spec
    profile = next(each for each in configuration.profiles if each.scheduler_name == spec.scheduler_name)
    spread = profile.plugin_config.get("PodTopologySpread")
    affinity = spec.affinity
    has_rules = (
        spec.topology_spread_constraints
        or any(map(_may_bind_to_nodes, spec.volumes or ()))
        or spec.resource_claims
        or ExtendedResources(simulator.cache.listers).asked_by(pod)
        or pod.host_ports
        or (affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None))
    )
    is_plain = (
        "NodeResourcesFit" in framework.plugins
        and not (profile.fit.ignored_resources or profile.fit.ignored_resource_groups)
        and isinstance(spread, PodTopologySpreadArgs)
        and not any(each.when_unsatisfiable == _HARD for each in spread.default_constraints)
        and framework.plugins.keys() <= _BY_NODE
        and not framework.limits_search
    )
    return bool(is_plain and not has_rules and not simulator.cache.nodes.clamped_rows and not simulator.keeps_room)


def _may_bind_to_nodes(volume: Volume) -> bool:
    """Whether it may be a volume that only some nodes have. The token that each pod is given is none."""
    return volume != Volume(name=volume.name, image=volume.image)


def _by_node(simulator: Simulator, framework: Framework, pod: PodInfo, most: int) -> _Counted:
    nodes = simulator.cache.nodes
    per_node: dict[str, int] = {}
    full_by = Counter[str]()
    left = most
    for name in simulator.cycle.feasible_nodes(pod, framework):
        row = nodes.row(name)
        assert row is not None
        room, resource = _room(nodes, row, pod)
        taken = min(room, left)
        left -= taken
        if taken:
            per_node[name] = taken
        full_by[resource] += 1
    stopped = None
    if left and per_node:
        full = ", ".join(f"{resource} on {count}" for resource, count in sorted(full_by.items()))
        others = len(nodes) - len(per_node)
        stopped = f"nodes are full by {full}" + (f"; {others} take none" if others else "")
    elif left:
        stopped = why_no_node(simulator.cycle.reject(pod, framework).outcome)
    return most - left, per_node, stopped


def _room(nodes: NodeTable, row: int, pod: PodInfo) -> tuple[int, str]:
    """How many copies a feasible node holds more, and the resource that says so."""
    room = [(int(nodes.allowed_pods[row]) - int(nodes.pod_count[row]), PODS)]
    for name, amount in pod.requests.amounts.items():
        if amount > 0:
            free = int(nodes.allocatable[name][row]) - int(nodes.requested[name][row])
            room.append((free // amount, name))
    return min(room)


def _in_turn(simulator: Simulator, pod: PodInfo, group: PodGroup | None, most: int) -> _Counted:
    """Place copy after copy, or gang after gang of them."""
    per_node = Counter[str]()
    fits, stopped, least = 0, None, 1 if group is None else group.least
    while fits < most:
        if (fits + 1) * least > MAX_COPIES:
            stopped = _ENOUGH
            break
        copies, groups = [_copy(pod.pod, fits * least + number) for number in range(least)], []
        if group is not None:
            key = group.key._replace(name=f"{group.key.name}-{fits}")
            copies = [_of_group(each, key) for each in copies]
            uid = f"copy:{fits}:{group.uid}"
            groups = [replace(group, key=key, uid=uid, preemption_policy="Never", condition=None)]
        simulator.add(ClusterObjects(pods=list(map(PodInfo, copies)), pod_groups=groups))
        left = {each.metadata.uid for each in copies}
        outcomes: list[Outcome | None] = []
        said = None
        while left and (step := simulator.step()) is not None:
            if step.pod.uid in left:
                left.remove(step.pod.uid)
                outcomes.append(step.outcome)
                said = said or step.message
        placed = [each.node_name for each in outcomes if isinstance(each, Placement)]
        if (len(simulator.groups.placed(groups[0].key)) if groups else len(placed)) < least:
            failed = next((each for each in outcomes if isinstance(each, FitError)), None)
            stopped = why_no_node(failed) if failed else said or _why_not_tried(simulator, copies[0])
            break
        fits += 1
        per_node.update(placed)
    return fits, per_node, stopped


def _of_group(pod: Pod, key: PodGroupKey) -> Pod:
    if key.source is GroupSource.NATIVE:
        named = SchedulingGroup(pod_group_name=key.name)
        return Pod(pod.metadata, structs.replace(pod.spec, scheduling_group=named), pod.status)
    labels = {**(pod.metadata.labels or {}), POD_GROUP_LABEL: key.name}
    return Pod(structs.replace(pod.metadata, labels=labels), pod.spec, pod.status)


def _why_not_tried(simulator: Simulator, pod: Pod) -> str:
    queued = simulator.queue.get(pod.metadata.uid)
    return (None if queued is None else queued.gating_message) or "it is not tried"


def why_no_node(outcome: Outcome) -> str:
    """Return why no node fits, without what preemption says of pods that evict nobody."""
    assert isinstance(outcome, FitError)
    return outcome.diagnosis.message


def _copy(pod: Pod, number: int) -> Pod:
    # The claims of its ephemeral volumes are called after it.
    own = {"name": f"{pod.metadata.name}-{number}", "uid": f"copy:{number}:{pod.metadata.uid}"}
    meta = structs.replace(pod.metadata, **own, creation_timestamp=None, deletion_timestamp=None)
    spec = structs.replace(pod.spec, node_name="", preemption_policy="Never", scheduling_gates=None)
    return Pod(meta, spec, PodStatus(phase="Pending"))


class NotCountedError(ValueError):
    """Raised where copies of a pod would not be alike; the text says why, and what to ask instead."""


def counted_pod(pods: Sequence[PodInfo]) -> PodInfo:
    """Return the one of `pods`, of which there is at least one, that stands for all; who counts copies relies on it.

    Raises:
        NotCountedError: they are not those of one workload, or their workload makes no two that are alike.
    """
    pod = pods[0]
    owner = _owner(pod)
    owners = {None if each is None else each.uid or each.name for each in map(_owner, pods)}
    if len(pods) > 1 and (len(owners) > 1 or owner is None):
        raise NotCountedError("is of one pod, or of the pods of one workload")
    if owner is not None and owner.kind == "DaemonSet":
        raise NotCountedError("a DaemonSet has one pod on each node; without a count it is said which of them fit")
    claims = [volume.persistent_volume_claim for volume in pod.pod.spec.volumes or ()]
    own = any(each is not None and each.claim_name.endswith(f"-{pod.name}") for each in claims)
    if owner is not None and owner.kind == "StatefulSet" and own:
        raise NotCountedError(
            "each pod of a StatefulSet has claims of its own; ask without a count, with as many replicas"
        )
    return pod


def _owner(pod: PodInfo) -> OwnerReference | None:
    return next(iter(pod.pod.metadata.owner_references or ()), None)
