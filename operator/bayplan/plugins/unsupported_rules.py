"""Rules of pods that no plugin of this version enforces: such pods are refused rather than placed against them."""

from collections.abc import Collection, Hashable, Iterator
from typing import ClassVar

from bayplan.api.objects import PodAffinity, Volume
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import CycleState, PreFilterResult
from bayplan.framework.status import SUCCESS, Code, Status
from bayplan.framework.traits import Traits

_Rule = tuple[str, str]
"""The plugin of kube-scheduler that enforces a rule, and what of the pod calls for it."""


class UnsupportedRules:
    """Refuses pods whose hard rules belong to plugins of kube-scheduler that do not exist here.

    Runs first in every profile, whatever is enabled. The rejection carries the names of those plugins. Preferences
    (preferred affinity, ScheduleAnyway) are not rules: they are left out of the score.
    """

    name: ClassVar[str] = "UnsupportedRules"
    traits: ClassVar[Traits] = Traits()

    def __init__(self, implemented: Collection[str]) -> None:
        self._implemented = frozenset(implemented)

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return self._broken_rules(pod)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        rules = self._broken_rules(pod)
        if not rules:
            return PreFilterResult(SUCCESS)
        texts = tuple(f"pod has {what}, which bayplan does not schedule yet ({plugin})" for plugin, what in rules)
        plugins = " ".join(sorted({plugin for plugin, _ in rules}))
        return PreFilterResult(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, texts, plugins))

    def _broken_rules(self, pod: PodInfo) -> tuple[_Rule, ...]:
        spec = pod.pod.spec
        if not (spec.affinity or spec.topology_spread_constraints or spec.volumes or spec.resource_claims):
            return ()
        rules = dict.fromkeys((*_placement_rules(pod), *_volume_rules(spec.volumes or ())))
        return tuple(rule for rule in rules if rule[0] not in self._implemented)


def _placement_rules(pod: PodInfo) -> Iterator[_Rule]:
    spec = pod.pod.spec
    if spec.affinity is not None:
        if _is_required(spec.affinity.pod_affinity):
            yield "InterPodAffinity", "required pod affinity"
        if _is_required(spec.affinity.pod_anti_affinity):
            yield "InterPodAffinity", "required pod anti-affinity"
    # An empty whenUnsatisfiable reads as the API's default, DoNotSchedule.
    if any(each.when_unsatisfiable != "ScheduleAnyway" for each in spec.topology_spread_constraints or ()):
        yield "PodTopologySpread", "a DoNotSchedule topology spread constraint"
    if spec.resource_claims:
        yield "DynamicResources", "resource claims"


def _volume_rules(volumes: Collection[Volume]) -> Iterator[_Rule]:
    for volume in volumes:
        if volume.persistent_volume_claim is not None:
            yield "VolumeBinding", "a persistent volume claim"
        if volume.ephemeral is not None:
            yield "VolumeBinding", "an ephemeral volume"
        disks = (volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.rbd, volume.iscsi)
        if any(disk is not None for disk in disks):
            yield "VolumeRestrictions", "an in-tree disk"


def _is_required(affinity: PodAffinity | None) -> bool:
    return affinity is not None and bool(affinity.required_during_scheduling_ignored_during_execution)
