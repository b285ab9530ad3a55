"""Short ways to make pod groups of either kind."""

import itertools

from tests.builders import CREATED

from bayplan.api.meta_objects import ObjectMeta, Quantity
from bayplan.api.objects import Condition
from bayplan.api.workload_objects import (
    DisruptionMode,
    GangPolicy,
    PodGroupSpec,
    PodGroupStatus,
    SchedulingConstraints,
    SchedulingPolicy,
    TopologyConstraint,
)
from bayplan.api.workload_objects import PodGroup as PodGroupObject
from bayplan.cache.group_members import GroupSource
from bayplan.groups.pod_groups import PodGroup, read_pod_group

_serial = itertools.count(1)


def make_pod_group(
    name: str = "g",
    *,
    namespace: str = "default",
    least: int | None = None,
    crd: bool = False,
    priority: int | None = None,
    topology_key: str = "",
    uid: str | None = None,
    condition: Condition | None = None,
    min_resources: dict[str, Quantity] | None = None,
    evicted_as_one: bool = False,
) -> PodGroup:
    """A gang of at least so many pods, or without `least` a group of basic policy; `crd` is of scheduler-plugins."""
    policy = SchedulingPolicy(basic={}) if least is None else SchedulingPolicy(gang=GangPolicy(min_count=least))
    topology = SchedulingConstraints(topology=[TopologyConstraint(key=topology_key)]) if topology_key else None
    own = PodGroupSpec(
        scheduling_policy=policy,
        scheduling_constraints=topology,
        priority=priority,
        disruption_mode=DisruptionMode(all={}) if evicted_as_one else None,
    )
    obj = PodGroupObject(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=uid if uid is not None else f"uid-group-{next(_serial)}",
            resource_version="1",
            creation_timestamp=CREATED,
        ),
        spec=PodGroupSpec(min_member=least, min_resources=min_resources) if crd else own,
        status=PodGroupStatus(conditions=[condition] if condition is not None else None),
    )
    return read_pod_group(obj, GroupSource.CRD if crd else GroupSource.NATIVE)
