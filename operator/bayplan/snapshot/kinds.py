"""Which kinds of objects a snapshot has."""

from collections.abc import Sequence
from typing import Final

from bayplan.api.kinds import NODES, PODS, RESOURCES, Resource
from bayplan.api.workload_objects import PriorityClass
from bayplan.simulate.workloads import WORKLOADS, DaemonSet, Deployment, Job

_AS_WORKLOADS: Final = {kind.__name__: kind for kind in WORKLOADS.values()}

KINDS: Final[Sequence[Resource]] = (
    # First, so that what pods name is there unless it was deleted meanwhile.
    PODS,
    NODES,
    Resource(PriorityClass, "scheduling.k8s.io", "priorityclasses"),
    # Simulations make the pods that workloads lack, for which more of them is read than plugins look up.
    *(
        Resource(_AS_WORKLOADS.get(each.kind, each.type), each.group, each.plural, namespaced=each.namespaced)
        for each in RESOURCES
    ),
    Resource(Deployment, "apps", "deployments", namespaced=True),
    Resource(DaemonSet, "apps", "daemonsets", namespaced=True),
    Resource(Job, "batch", "jobs", namespaced=True),
)
"""All that simulations read, in the order in which it is listed, but for CronJobs and PodTemplates.

Of those a simulation makes pods that the cluster's controllers would not make now.
"""
ESSENTIAL: Final = frozenset({PODS.plural, NODES.plural})
"""Without these there is no snapshot."""


def right_to_list(resource: Resource) -> str:
    """Return what to ask for, in the words of roles, such as `list jobs.batch`."""
    return f"list {resource.plural}.{resource.group}" if resource.group else f"list {resource.plural}"
