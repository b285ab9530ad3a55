"""A pod group as scheduling sees it, read from either kind of object."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from bayplan.api.meta_objects import Quantity
from bayplan.api.workload_objects import PodGroup as PodGroupObject
from bayplan.api.workload_objects import PodGroupCondition
from bayplan.cache.group_members import GroupSource, PodGroupKey

INITIALLY_SCHEDULED: Final = "PodGroupInitiallyScheduled"
"""The condition that says whether the group was ever placed (upstream: apis/scheduling types.go)."""


@dataclass(frozen=True, slots=True)
class PodGroup:
    """What queue, round and preemption need to know of one group; another version of it is another value.

    `least` is how many members must be on nodes, or find room, for any of them to start: at least 1. `is_gang` tells a
    gang from a group that only shares a name, which has 1. `priority` is None for those of the CRD, which are as
    important as their most important member; a native group without a priority has 0. `topology_key` is "" where pods
    may stand anywhere. `evicted_as_one` has preemption take all pods or none. `created` is RFC 3339 text.
    """

    key: PodGroupKey
    uid: str
    is_gang: bool
    least: int
    priority: int | None = None
    preemption_policy: str | None = None
    topology_key: str = ""
    evicted_as_one: bool = False
    min_resources: Mapping[str, Quantity] | None = None
    created: str | None = None
    is_terminating: bool = False
    generation: int = 0
    condition: PodGroupCondition | None = None
    """The condition `INITIALLY_SCHEDULED` in this version, whoever wrote it."""

    @property
    def is_native(self) -> bool:
        """Whether it is of Kubernetes' own kind: with one priority for all pods, and with conditions."""
        return self.key.source is GroupSource.NATIVE


def read_pod_group(obj: PodGroupObject, source: GroupSource) -> PodGroup:
    """Return what an object of `source` says.

    The CRD takes any number, and none: a `minMember` below 2 asks for nothing, as Kubernetes' basic policy does.
    """
    meta, spec = obj.metadata, obj.spec
    if source is GroupSource.NATIVE:
        gang = None if spec.scheduling_policy is None else spec.scheduling_policy.gang
        is_gang, least = gang is not None, 1 if gang is None else max(gang.min_count, 1)
    else:
        least = max(spec.min_member or 0, 1)
        is_gang = least > 1
    topology = (None if spec.scheduling_constraints is None else spec.scheduling_constraints.topology) or ()
    return PodGroup(
        key=PodGroupKey(source, meta.namespace, meta.name),
        uid=meta.uid,
        is_gang=is_gang,
        least=least,
        priority=(spec.priority or 0) if source is GroupSource.NATIVE else None,
        preemption_policy=spec.preemption_policy,
        topology_key=topology[0].key if topology else "",
        evicted_as_one=spec.disruption_mode is not None and spec.disruption_mode.all is not None,
        min_resources=spec.min_resources,
        created=meta.creation_timestamp,
        is_terminating=meta.deletion_timestamp is not None,
        generation=meta.generation,
        condition=next((each for each in obj.status.conditions or () if each.type == INITIALLY_SCHEDULED), None),
    )
