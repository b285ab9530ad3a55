"""What each of scheduler_perf's families puts on a cluster (test/integration/scheduler_perf/*/performance-config.yaml).

Nodes have 4 CPUs, 32 GiB and 110 pods, pods ask for 100m and 500 MiB, as there. Pods that exist from the start are
created on their nodes instead of being scheduled first; that is the only difference in what a scheduler sees.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from e2e.bench.workload import SCHEDULER_NAME
from e2e.controlplane.client import Object
from e2e.controlplane.objects import node, pod

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
CSI_DRIVER = "ebs.csi.aws.com"
_PLAIN = {"cpu": "100m", "memory": "500Mi"}
_CSI_VOLUMES_PER_NODE = 39


@dataclass(frozen=True, slots=True)
class Size:
    """How many nodes there are, pods on them from the start, and pods whose scheduling is measured."""

    nodes: int
    init: int
    measured: int

    def scaled(self, scale: float) -> "Size":
        """The same proportions, each number at least 1 unless it is 0."""
        return Size(*(max(1, round(each * scale)) if each else 0 for each in (self.nodes, self.init, self.measured)))


@dataclass(slots=True)
class Workload:
    """Objects by plural name in the order of their making, then pods; all of `measured` can be bound."""

    nodes: list[Object]
    namespaces: dict[str, dict[str, str]]
    measured: list[Object]
    init: list[Object] = field(default_factory=list)
    objects: list[tuple[str, Object]] = field(default_factory=list)
    pending: list[Object] = field(default_factory=list)
    """Pods that wait from the start and can never be bound."""

    @property
    def measured_namespace(self) -> str:
        """The namespace of the measured pods."""
        namespace: str = self.measured[0]["metadata"]["namespace"]
        return namespace


@dataclass(frozen=True, slots=True)
class Family:
    """One family: upstream's size, and the rate its continuous integration demands (None: none)."""

    name: str
    size: Size
    threshold: int | None
    build: Callable[[Size, str], Workload]


def _name(index: int) -> str:
    return f"node-{index:05d}"


def _nodes(count: int, *, zones: tuple[str, ...] = (), resources: dict[str, str] | None = None) -> list[Object]:
    return [
        node(
            _name(i),
            cpu="4",
            memory="32Gi",
            resources={"ephemeral-storage": "100Gi", **(resources or {})},
            labels={ZONE: zones[i % len(zones)]} if zones else None,
        )
        for i in range(count)
    ]


Template = Callable[[int], dict[str, Any]]
"""Labels, requests and spec of the i-th pod, as arguments of `pod`."""


def _plain(_: int) -> dict[str, Any]:
    return {}


def _pods(
    template: Template, prefix: str, count: int, namespace: str, nodes: list[Object] | None = None
) -> list[Object]:
    return [
        pod(
            f"{prefix}-{i:05d}",
            namespace,
            scheduler=SCHEDULER_NAME,
            node_name=None if nodes is None else nodes[i % len(nodes)]["metadata"]["name"],
            **{"requests": _PLAIN, **template(i)},
        )
        for i in range(count)
    ]


def _workload(
    nodes: list[Object], size: Size, scope: str, measured: Template, init: Template | None = None
) -> Workload:
    """Init pods in the first namespace, measured ones in the second, as in scheduler_perf."""
    first, second = f"{scope}-0", f"{scope}-1"
    return Workload(
        nodes,
        {first: {}, second: {}},
        _pods(measured, "measured", size.measured, second),
        _pods(init or measured, "init", size.init, first, nodes),
    )


def _of_pods(
    kind: str, term: Callable[[str], dict[str, Any]], color: str, *, required: bool
) -> Callable[[str], Template]:
    """A template with one pod (anti-)affinity term, for the namespaces of a scope."""

    def for_scope(scope: str) -> Template:
        one = {"labelSelector": {"matchLabels": {"color": color}}, **term(scope)}
        rule = (
            {"requiredDuringSchedulingIgnoredDuringExecution": [one]}
            if required
            else {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": one}]}
        )
        return lambda _: {"labels": {"color": color, "name": "test"}, "affinity": {kind: rule}}

    return for_scope


def _both(topology_key: str) -> Callable[[str], dict[str, Any]]:
    return lambda scope: {"topologyKey": topology_key, "namespaces": [f"{scope}-0", f"{scope}-1"]}


def _devops(topology_key: str) -> Callable[[str], dict[str, Any]]:
    return lambda scope: {"topologyKey": topology_key, "namespaceSelector": {"matchLabels": {"team": scope}}}


ANTI = _of_pods("podAntiAffinity", _both(HOSTNAME), "green", required=True)
TOGETHER = _of_pods("podAffinity", _both(ZONE), "blue", required=True)
LIKES = _of_pods("podAffinity", _both(HOSTNAME), "red", required=False)
DISLIKES = _of_pods("podAntiAffinity", _both(HOSTNAME), "yellow", required=False)


def _basic(size: Size, scope: str) -> Workload:
    return _workload(_nodes(size.nodes), size, scope, _plain)


def _pod_terms(template: Callable[[str], Template], zones: tuple[str, ...] = ()) -> Callable[[Size, str], Workload]:
    return lambda size, scope: _workload(_nodes(size.nodes, zones=zones), size, scope, template(scope))


def _matching_anti_affinity(size: Size, scope: str) -> Workload:
    return _workload(_nodes(size.nodes), size, scope, lambda _: {"labels": {"color": "green"}}, ANTI(scope))


def _ns_selector(kind: str, topology_key: str, *, required: bool) -> Callable[[Size, str], Workload]:
    """Init pods are spread over a hundred labelled namespaces that the terms select."""

    def build(size: Size, scope: str) -> Workload:
        template = _of_pods(kind, _devops(topology_key), "green", required=required)(scope)
        nodes = _nodes(size.nodes, zones=("zone1",))
        namespaces = [f"{scope}-init-{i}" for i in range(min(100, max(1, size.init)))]
        init = _pods(template, "init", size.init, "", nodes)
        for i, each in enumerate(init):
            each["metadata"]["namespace"] = namespaces[i % len(namespaces)]
        measured = f"{scope}-1"
        labelled = {name: {"team": scope} for name in (*namespaces, measured)}
        return Workload(nodes, labelled, _pods(template, "measured", size.measured, measured), init)

    return build


def _node_affinity(size: Size, scope: str) -> Workload:
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["zone1", "zone2"]}]}]
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return _workload(_nodes(size.nodes, zones=("zone1",)), size, scope, lambda _: {"affinity": {"nodeAffinity": rule}})


def _daemonset(size: Size, scope: str) -> Workload:
    field_term = {"key": "metadata.name", "operator": "In", "values": ["the-node"]}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field_term]}]}}
    the_node = node("the-node", cpu="90000", memory="90000Gi", pods="90000")
    nodes = [*_nodes(size.nodes), the_node]
    return _workload(nodes, size, scope, lambda _: {"affinity": {"nodeAffinity": rule}})


def _mixed(size: Size, scope: str) -> Workload:
    kinds = [_plain, ANTI(scope), TOGETHER(scope), LIKES(scope), DISLIKES(scope)]
    nodes = _nodes(size.nodes, zones=("zone1",))
    return _workload(nodes, size, scope, _plain, lambda i: kinds[i * len(kinds) // max(1, size.init)](i))


def _spread(when: str, **policies: str) -> Callable[[Size, str], Workload]:
    constraint = {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"color": "blue"}},
        **policies,
    }

    def build(size: Size, scope: str) -> Workload:
        nodes = _nodes(size.nodes, zones=("moon-1", "moon-2", "moon-3"))
        template = {"labels": {"color": "blue"}, "topologySpreadConstraints": [constraint]}
        return _workload(nodes, size, scope, lambda _: template, _plain)

    return build


def _default_spread(size: Size, scope: str) -> Workload:
    nodes = _nodes(size.nodes, zones=("moon-1", "moon-2", "moon-3"))
    work = _workload(nodes, size, scope, lambda _: {"labels": {"color": "blue"}}, _plain)
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "blue", "namespace": f"{scope}-1"},
        "spec": {"selector": {"color": "blue"}, "ports": [{"port": 80}]},
    }
    work.objects.append(("services", service))
    return work


def _inclusion(size: Size, scope: str) -> Workload:
    """Four fifths of the nodes are plain, one fifth is tainted, and the constraint counts plain ones only."""
    nodes = _nodes(size.nodes)
    for each in nodes[size.nodes * 4 // 5 :]:
        each["spec"]["taints"] = [{"key": "foo", "effect": "NoSchedule"}]
    constraint = {
        "maxSkew": 1,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"foo": "bar"}},
        "nodeTaintsPolicy": "Honor",
    }
    template = {"labels": {"foo": "bar"}, "topologySpreadConstraints": [constraint]}
    return _workload(nodes, size, scope, lambda _: template)


def _secrets(size: Size, scope: str) -> Workload:
    volumes = [{"name": "secret", "secret": {"secretName": "secret"}}]
    return _workload(_nodes(size.nodes), size, scope, lambda _: {"volumes": volumes})


def _claims(csi: bool) -> Callable[[Size, str], Workload]:
    """A bound pair of claim and volume for every pod."""

    def build(size: Size, scope: str) -> Workload:
        nodes = _nodes(size.nodes)
        work = _workload(
            nodes, size, scope, lambda i: {"volumes": [_claim_volume(f"measured-{i:05d}")]},
            lambda i: {"volumes": [_claim_volume(f"init-{i:05d}")]},
        )  # fmt: skip
        if csi:
            driver = {"name": CSI_DRIVER, "nodeID": "n", "allocatable": {"count": _CSI_VOLUMES_PER_NODE}}
            work.objects += [
                (
                    "csinodes",
                    {
                        "apiVersion": "storage.k8s.io/v1",
                        "kind": "CSINode",
                        "metadata": {"name": each["metadata"]["name"]},
                        "spec": {"drivers": [driver]},
                    },
                )
                for each in nodes
            ]
        for each in (*work.init, *work.measured):
            work.objects += _bound_pair(scope, each["metadata"]["namespace"], each["metadata"]["name"], csi=csi)
        return work

    return build


def _claim_volume(name: str) -> Object:
    return {"name": "data", "persistentVolumeClaim": {"claimName": name}}


def _bound_pair(scope: str, namespace: str, name: str, *, csi: bool) -> list[tuple[str, Object]]:
    volume = f"{scope}-{name}"
    source = (
        {"csi": {"driver": CSI_DRIVER, "volumeHandle": volume}}
        if csi
        else {"nfs": {"server": "nfs.example.com", "path": f"/{volume}"}}
    )
    shared = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    persistent_volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": volume},
        "spec": {
            **shared,
            **source,
            "capacity": {"storage": "1Gi"},
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": name},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {**shared, "volumeName": volume, "resources": {"requests": {"storage": "1Gi"}}},
    }
    return [("persistentvolumes", persistent_volume), ("persistentvolumeclaims", claim)]


def _preemption(size: Size, scope: str) -> Workload:
    """Every node full of four pods of low priority; each measured pod needs three of them gone."""
    low = {"requests": {"cpu": "900m", "memory": "500Mi"}}
    high = {"requests": {"cpu": "3000m", "memory": "500Mi"}, "priorityClassName": f"{scope}-high"}
    work = _workload(_nodes(size.nodes), size, scope, lambda _: high, lambda _: low)
    work.objects.append(
        (
            "priorityclasses",
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": f"{scope}-high"},
                "value": 10,
            },
        )
    )
    return work


def _unschedulable(size: Size, scope: str) -> Workload:
    """Pods that no node can hold wait beside those that are measured."""
    work = _workload(_nodes(size.nodes), Size(size.nodes, 0, size.measured), scope, _plain)
    work.pending = _pods(lambda _: {"requests": {"cpu": "9", "memory": "500Mi"}}, "large", size.init, f"{scope}-0")
    return work


def _extended(size: Size, scope: str) -> Workload:
    nodes = _nodes(size.nodes, resources={"foo.com/bar": "10"})
    return _workload(nodes, size, scope, lambda _: {"requests": {**_PLAIN, "foo.com/bar": "1"}})


def _gated(size: Size, scope: str) -> Workload:
    work = _workload(_nodes(size.nodes), Size(size.nodes, 0, size.measured), scope, _plain)
    # One node takes them all, as there.
    work.nodes[0]["status"]["allocatable"] |= {"cpu": "90000", "memory": "90000Gi", "pods": "90000"}
    gated = {"schedulingGates": [{"name": "example.com/gate"}]}
    work.pending = _pods(lambda _: gated, "gated", size.init, f"{scope}-0")
    return work


FAMILIES: tuple[Family, ...] = (
    Family("SchedulingBasic", Size(5000, 1000, 10000), 270, _basic),
    Family("SchedulingDaemonset", Size(15000, 0, 30000), 390, _daemonset),
    Family("SchedulingWithExtendedResource", Size(5000, 0, 5000), None, _extended),
    Family("SchedulingWhileGated", Size(1, 10000, 20000), 130, _gated),
    Family("Unschedulable", Size(5000, 100, 10000), 170, _unschedulable),
    Family("Unschedulable20kInit", Size(5000, 20000, 10000), None, _unschedulable),
    Family("SchedulingPodAntiAffinity", Size(5000, 1000, 2000), 60, _pod_terms(ANTI)),
    Family("SchedulingPodMatchingAntiAffinity", Size(5000, 1000, 3000), 540, _matching_anti_affinity),
    Family("SchedulingPodAffinity", Size(5000, 5000, 5000), 35, _pod_terms(TOGETHER, ("zone1",))),
    Family("SchedulingPreferredPodAffinity", Size(5000, 5000, 5000), 90, _pod_terms(LIKES)),
    Family("SchedulingPreferredPodAntiAffinity", Size(5000, 5000, 5000), 90, _pod_terms(DISLIKES)),
    Family("SchedulingNodeAffinity", Size(5000, 5000, 10000), 220, _node_affinity),
    Family("MixedSchedulingBasePod", Size(5000, 10000, 5000), 140, _mixed),
    Family(
        "SchedulingRequiredPodAntiAffinityWithNSSelector",
        Size(6000, 4000, 2000),
        24,
        _ns_selector("podAntiAffinity", HOSTNAME, required=True),
    ),
    Family(
        "SchedulingPreferredAntiAffinityWithNSSelector",
        Size(5000, 4000, 2000),
        55,
        _ns_selector("podAntiAffinity", HOSTNAME, required=False),
    ),
    Family(
        "SchedulingRequiredPodAffinityWithNSSelector",
        Size(5000, 5000, 2000),
        35,
        _ns_selector("podAffinity", ZONE, required=True),
    ),
    Family(
        "SchedulingPreferredAffinityWithNSSelector",
        Size(5000, 5000, 5000),
        90,
        _ns_selector("podAffinity", HOSTNAME, required=False),
    ),
    Family("TopologySpreading", Size(5000, 5000, 5000), 85, _spread("DoNotSchedule")),
    Family("PreferredTopologySpreading", Size(5000, 5000, 5000), 125, _spread("ScheduleAnyway")),
    Family("DefaultTopologySpreading", Size(5000, 5000, 10000), None, _default_spread),
    Family("SchedulingWithNodeInclusionPolicy", Size(5000, 0, 4000), 68, _inclusion),
    Family("SchedulingSecrets", Size(5000, 1000, 10000), 260, _secrets),
    Family("SchedulingBoundPVs", Size(5000, 1000, 2000), 90, _claims(csi=False)),
    Family("SchedulingCSIPVs", Size(5000, 5000, 5000), 48, _claims(csi=True)),
    Family("PreemptionBasic", Size(500, 2000, 500), None, _preemption),
)
"""The families, upstream's largest size of each.

Not here: families of dynamic resource allocation, whose pods bayplan refuses; those that measure churn of other
objects; in-tree and migrated volumes, which count as CSI volumes (SchedulingBoundPVs has the same shape with a kind of
volume that needs no migration).
"""
