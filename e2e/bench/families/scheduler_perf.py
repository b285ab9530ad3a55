"""The families of kube-scheduler's benchmark (test/integration/scheduler_perf/*/performance-config.yaml)."""

from dataclasses import dataclass

from e2e.bench.families.affinity import (
    ANTI,
    DISLIKES,
    LIKES,
    TOGETHER,
    daemonset,
    matching_anti_affinity,
    mixed,
    node_affinity,
    ns_selector,
    pod_terms,
)
from e2e.bench.families.resource_requests import basic, extended, gated, preemption, unschedulable
from e2e.bench.families.spreading import default_spread, inclusion, spread
from e2e.bench.families.volumes import claims, secrets
from e2e.bench.families.workloads import HOSTNAME, ZONE, Build, Size


@dataclass(frozen=True, slots=True)
class Family:
    """One family: upstream's size, and the rate its continuous integration demands (None: none)."""

    name: str
    size: Size
    threshold: int | None
    build: Build


FAMILIES: tuple[Family, ...] = (
    Family("SchedulingBasic", Size(5000, 1000, 10000), 270, basic),
    Family("SchedulingDaemonset", Size(15000, 0, 30000), 390, daemonset),
    Family("SchedulingWithExtendedResource", Size(5000, 0, 5000), None, extended),
    Family("SchedulingWhileGated", Size(1, 10000, 20000), 130, gated),
    Family("Unschedulable", Size(5000, 100, 10000), 170, unschedulable),
    Family("Unschedulable20kInit", Size(5000, 20000, 10000), None, unschedulable),
    Family("SchedulingPodAntiAffinity", Size(5000, 1000, 2000), 60, pod_terms(ANTI)),
    Family("SchedulingPodMatchingAntiAffinity", Size(5000, 1000, 3000), 540, matching_anti_affinity),
    Family("SchedulingPodAffinity", Size(5000, 5000, 5000), 35, pod_terms(TOGETHER, ("zone1",))),
    Family("SchedulingPreferredPodAffinity", Size(5000, 5000, 5000), 90, pod_terms(LIKES)),
    Family("SchedulingPreferredPodAntiAffinity", Size(5000, 5000, 5000), 90, pod_terms(DISLIKES)),
    Family("SchedulingNodeAffinity", Size(5000, 5000, 10000), 220, node_affinity),
    Family("MixedSchedulingBasePod", Size(5000, 10000, 5000), 140, mixed),
    Family(
        "SchedulingRequiredPodAntiAffinityWithNSSelector",
        Size(6000, 4000, 2000),
        24,
        ns_selector("podAntiAffinity", HOSTNAME, required=True),
    ),
    Family(
        "SchedulingPreferredAntiAffinityWithNSSelector",
        Size(5000, 4000, 2000),
        55,
        ns_selector("podAntiAffinity", HOSTNAME, required=False),
    ),
    Family(
        "SchedulingRequiredPodAffinityWithNSSelector",
        Size(5000, 5000, 2000),
        35,
        ns_selector("podAffinity", ZONE, required=True),
    ),
    Family(
        "SchedulingPreferredAffinityWithNSSelector",
        Size(5000, 5000, 5000),
        90,
        ns_selector("podAffinity", HOSTNAME, required=False),
    ),
    Family("TopologySpreading", Size(5000, 5000, 5000), 85, spread("DoNotSchedule")),
    Family("PreferredTopologySpreading", Size(5000, 5000, 5000), 125, spread("ScheduleAnyway")),
    Family("DefaultTopologySpreading", Size(5000, 5000, 10000), None, default_spread),
    Family("SchedulingWithNodeInclusionPolicy", Size(5000, 0, 4000), 68, inclusion),
    Family("SchedulingSecrets", Size(5000, 1000, 10000), 260, secrets),
    Family("SchedulingBoundPVs", Size(5000, 1000, 2000), 90, claims(csi=False)),
    Family("SchedulingCSIPVs", Size(5000, 5000, 5000), 48, claims(csi=True)),
    Family("PreemptionBasic", Size(500, 2000, 500), None, preemption),
)
"""The families, upstream's largest size of each.

Not here: families of dynamic resource allocation, whose pods bayplan refuses; those that measure churn of other
objects; in-tree and migrated volumes, which count as CSI volumes (SchedulingBoundPVs has the same shape with a kind of
volume that needs no migration).
"""
