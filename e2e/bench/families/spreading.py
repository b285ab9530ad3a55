"""Workloads whose pods are spread over zones or nodes."""

from e2e.bench.families.workloads import HOSTNAME, ZONE, Build, Size, Workload, make_nodes, make_workload, plain_pod


def spread(when: str, **policies: str) -> Build:
    """Measured pods have a constraint over three zones that counts them alone, beside plain init pods."""
    constraint = {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"color": "blue"}},
        **policies,
    }

    def build(size: Size, scope: str) -> Workload:
        nodes = make_nodes(size.nodes, zones=("moon-1", "moon-2", "moon-3"))
        template = {"labels": {"color": "blue"}, "topologySpreadConstraints": [constraint]}
        return make_workload(nodes, size, scope, lambda _: template, plain_pod)

    return build


def default_spread(size: Size, scope: str) -> Workload:
    """Measured pods have no constraint, but a Service, for which the default constraints count."""
    nodes = make_nodes(size.nodes, zones=("moon-1", "moon-2", "moon-3"))
    work = make_workload(nodes, size, scope, lambda _: {"labels": {"color": "blue"}}, plain_pod)
    service = {
        "metadata": {"name": "blue", "namespace": f"{scope}-1"},
        "spec": {"selector": {"color": "blue"}, "ports": [{"port": 80}]},
    }
    work.objects.append(("services", service))
    return work


def inclusion(size: Size, scope: str) -> Workload:
    """Four fifths of the nodes are plain, one fifth is tainted, and the constraint counts plain ones only."""
    nodes = make_nodes(size.nodes)
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
    return make_workload(nodes, size, scope, lambda _: template)
