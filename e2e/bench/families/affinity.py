"""Workloads whose pods have affinity, or anti-affinity, to pods or to nodes."""

from collections.abc import Callable
from typing import Any

from e2e.bench.families.workloads import (
    HOSTNAME,
    ZONE,
    Build,
    Size,
    Template,
    Workload,
    make_nodes,
    make_pods,
    make_workload,
    plain_pod,
)
from e2e.controlplane.objects import node


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


def pod_terms(template: Callable[[str], Template], zones: tuple[str, ...] = ()) -> Build:
    """All pods have the terms of the template."""
    return lambda size, scope: make_workload(make_nodes(size.nodes, zones=zones), size, scope, template(scope))


def matching_anti_affinity(size: Size, scope: str) -> Workload:
    """Only the init pods have anti-affinity, whose terms match the measured ones too."""
    return make_workload(make_nodes(size.nodes), size, scope, lambda _: {"labels": {"color": "green"}}, ANTI(scope))


def ns_selector(kind: str, topology_key: str, *, required: bool) -> Build:
    """Init pods are spread over a hundred labelled namespaces that the terms select."""

    def build(size: Size, scope: str) -> Workload:
        template = _of_pods(kind, _devops(topology_key), "green", required=required)(scope)
        nodes = make_nodes(size.nodes, zones=("zone1",))
        namespaces = [f"{scope}-init-{i}" for i in range(min(100, max(1, size.init)))]
        init = make_pods(template, "init", size.init, "", nodes)
        for i, each in enumerate(init):
            each["metadata"]["namespace"] = namespaces[i % len(namespaces)]
        measured = f"{scope}-1"
        labelled = {name: {"team": scope} for name in (*namespaces, measured)}
        return Workload(nodes, labelled, make_pods(template, "measured", size.measured, measured), init)

    return build


def node_affinity(size: Size, scope: str) -> Workload:
    """All pods require one of two zones, and all nodes are in one of them."""
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["zone1", "zone2"]}]}]
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return make_workload(
        make_nodes(size.nodes, zones=("zone1",)), size, scope, lambda _: {"affinity": {"nodeAffinity": rule}}
    )


def daemonset(size: Size, scope: str) -> Workload:
    """All pods require one node by its name, as a DaemonSet's do; it takes them all."""
    field_term = {"key": "metadata.name", "operator": "In", "values": ["the-node"]}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field_term]}]}}
    the_node = node("the-node", cpu="90000", memory="90000Gi", pods="90000")
    nodes = [*make_nodes(size.nodes), the_node]
    return make_workload(nodes, size, scope, lambda _: {"affinity": {"nodeAffinity": rule}})


def mixed(size: Size, scope: str) -> Workload:
    """Plain pods are measured among init pods without affinity and with each kind of it to pods."""
    kinds = [plain_pod, ANTI(scope), TOGETHER(scope), LIKES(scope), DISLIKES(scope)]
    nodes = make_nodes(size.nodes, zones=("zone1",))
    return make_workload(nodes, size, scope, plain_pod, lambda i: kinds[i * len(kinds) // max(1, size.init)](i))
