"""Builders of odd pods, each with the verdict it must get."""

from e2e.controlplane.client import Object
from e2e.controlplane.objects import container
from e2e.hostile.row import BOUND, Case

MAX = 2**63 - 1


def requests(verdict: str = BOUND, **amounts: object) -> Case:
    """A container with these requests, as they are: numbers and null stay so. `cpu` and the like by name."""
    return Case(verdict, {"containers": [container(amounts)]})


def several(verdict: str, count: int, **amounts: object) -> Case:
    return Case(verdict, {"containers": [container(amounts, f"c{index}") for index in range(count)]})


def affinity(verdict: str, *terms: Object) -> Case:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return Case(verdict, {"affinity": {"nodeAffinity": required}})


def expression(key: str, operator: str, *values: str) -> Object:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def near(verdict: str, kind: str, *terms: Object) -> Case:
    return Case(verdict, {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}})


def wishes(kind: str, *terms: Object) -> Case:
    weighted = [{"weight": 100, "podAffinityTerm": term} for term in terms]
    return Case(BOUND, {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}})


def pods_with(key: str, *expressions: Object, **more: object) -> Object:
    """A pod affinity term by these expressions."""
    return {"topologyKey": key, "labelSelector": {"matchExpressions": list(expressions)}, **more}


def one(key: str, operator: str, *values: str) -> Object:
    return {"key": key, "operator": operator, "values": list(values)}


def volumes(verdict: str, *sources: Object) -> Case:
    return Case(verdict, {"volumes": [{"name": f"v{index}", **source} for index, source in enumerate(sources)]})


def claims(verdict: str, *names: str) -> Case:
    return volumes(verdict, *({"persistentVolumeClaim": {"claimName": name}} for name in names))


def ports(*host_ports: Object) -> Case:
    return Case(BOUND, {"containers": [container({}, ports=[{"containerPort": 80, **one} for one in host_ports])]})


def on_node(verdict: str, name: str, amounts: Object | None = None) -> Case:
    """A pod that tolerates everything and wants one of the odd nodes."""
    return Case(
        verdict,
        {
            "containers": [container(amounts or {"cpu": "1", "memory": "1Gi"})],
            "nodeSelector": {"kubernetes.io/hostname": name},
            "tolerations": [{"operator": "Exists"}],
        },
    )
