"""Looks for a single change of a pod that would make it fit, and tries it out on the engine before telling it."""

from collections.abc import Iterable, Iterator
from itertools import islice
from operator import itemgetter
from typing import Final

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from bayplan.api.objects import Affinity, Container, Pod, ResourceRequirements, Toleration
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import CPU, PODS
from bayplan.explain.explanation import LessOfResource, NoNodeAffinity, OneToleration, OtherLabel, Uncordon
from bayplan.explain.node_groups import RejectedNodes
from bayplan.framework.causes import Detail, LabelMismatch, Shortage, UntoleratedTaint

_MOST_CONTAINERS: Final = 64
"""Of pods with more containers no smaller request is tried out."""
_MOST_TRIED: Final = 4
"""So many changes of a kind are tried out, the smallest first: each takes an evaluation of all nodes."""

_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"

_NODE_AFFINITY: Final = "NodeAffinity"
_NODE_UNSCHEDULABLE: Final = "NodeUnschedulable"

OwnChange = LessOfResource | OneToleration | OtherLabel | NoNodeAffinity | Uncordon
"""A change of the pod itself, or of what one node says of itself."""


def helpful_changes(rejected: RejectedNodes) -> list[OwnChange]:
    """Return, for a pod that fits nowhere, the smallest single change of each kind that makes it fit.

    Only nodes that one filter rejects for one cause come into question, and cordoned ones, whose taint has a second
    filter reject them. Each change was applied and evaluated anew, so
    that what else depends on it has been heard.
    """
    if rejected.decision.evaluation.pre_filters.rejection is not None:
        return []
    by_kind: dict[type, list[tuple[float, OwnChange]]] = {}
    for size, change in _near_misses(rejected):
        by_kind.setdefault(type(change), []).append((size, change))
    found: list[OwnChange] = []
    for misses in by_kind.values():
        smallest = sorted(misses, key=itemgetter(0))[:_MOST_TRIED]
        tried = (_where_it_helps(rejected, change) for _, change in smallest)
        found += islice((change for change in tried if change is not None), 1)
    return found


def changed(pod: Pod, change: OwnChange) -> Pod | None:
    """Return `pod` with the change made; None where no request can be made that much smaller.

    That a node is not cordoned has for the pod the effect of tolerating that.
    """
    spec = pod.spec
    match change:
        case LessOfResource(resource, by, _):
            return _with_less(pod, resource, by)
        case OneToleration(key, value, effect, _):
            toleration = Toleration(key=key, operator="Equal", value=value, effect=effect)
            spec = structs.replace(spec, tolerations=[*(spec.tolerations or ()), toleration])
        case OtherLabel(key, _, there_is, _):
            labels = {name: value for name, value in (spec.node_selector or {}).items() if name != key}
            spec = structs.replace(spec, node_selector=labels | ({} if there_is is None else {key: there_is}))
        case NoNodeAffinity():
            spec = structs.replace(spec, affinity=_without_required(spec.affinity))
        case Uncordon():
            toleration = Toleration(key=_UNSCHEDULABLE, operator="Exists", effect="NoSchedule")
            spec = structs.replace(spec, tolerations=[*(spec.tolerations or ()), toleration])
    return structs.replace(pod, spec=spec)


def _near_misses(rejected_nodes: RejectedNodes) -> Iterator[tuple[float, OwnChange]]:
    """Give changes by size, the smaller the better: of requests their share, of others how common they are."""
    decision, order = rejected_nodes.decision, rejected_nodes.order
    pod, nodes, verdicts = decision.pod, decision.nodes, decision.evaluation.verdicts
    rows = nodes.rows()
    for rejection in verdicts.by_filter(rows[~verdicts.narrowed_out(rows)]):
        if rejection.plugin.name == _NODE_UNSCHEDULABLE:
            yield 1 / len(rejection.rows), Uncordon(nodes.names[order.first(rejection.rows)])
    for rejection in verdicts.solely_by_filter(pod):
        rejected, details = rejection.rows, rejected_nodes.details(rejection)
        if rejection.plugin.name == _NODE_AFFINITY and pod.pod.spec.required_nodes is not None:
            selected = rejected[~_by_node_selector(details, pod, len(rejected))]
            if len(selected):
                yield 1 / len(selected), NoNodeAffinity(nodes.names[order.first(selected)])
        for detail, places in _single_causes(details, len(rejected)):
            cause = detail.tell(places)
            first = order.first(rejected[places])
            if isinstance(cause, Shortage) and cause.resource != PODS and cause.most_free > 0:
                # Where nothing is free, no smaller request is one.
                by = cause.asked - cause.most_free
                yield by / cause.asked, LessOfResource(cause.resource, by, cause.node)
            elif isinstance(cause, UntoleratedTaint):
                yield 1 / len(places), OneToleration(cause.key, cause.value, cause.effect, nodes.names[first])
            elif isinstance(cause, LabelMismatch) and cause.key in (pod.pod.spec.node_selector or {}):
                yield 1 / len(places), _other_label(nodes, pod, cause.key, first)


def _single_causes(details: Iterable[Detail], count: int) -> Iterator[tuple[Detail, NDArray[np.intp]]]:
    """Give each detail with the places, of `count`, where it holds and no other does."""
    details = list(details)
    together: NDArray[np.int64] = np.zeros(count, dtype=np.int64)
    for detail in details:
        together += detail.holds
    for detail in details:
        places = np.flatnonzero(detail.holds & (together == 1))
        if len(places):
            yield detail, places


def _by_node_selector(details: Iterable[Detail], pod: PodInfo, count: int) -> NDArray[np.bool_]:
    """Return which of `count` places the pod's nodeSelector rules out, `(count,) bool`."""
    labels = pod.pod.spec.node_selector or {}
    out = np.zeros(count, dtype=np.bool_)
    for detail in details:
        cause = detail.tell(np.flatnonzero(detail.holds))
        if isinstance(cause, LabelMismatch) and cause.asked.first == (labels.get(cause.key),):
            out |= detail.holds
    return out


def _without_required(affinity: Affinity | None) -> Affinity | None:
    if affinity is None or affinity.node_affinity is None:
        return affinity
    on_nodes = structs.replace(affinity.node_affinity, required_during_scheduling_ignored_during_execution=None)
    return structs.replace(affinity, node_affinity=on_nodes)


def _other_label(nodes: NodeTable, pod: PodInfo, key: str, row: int) -> OtherLabel:
    node = nodes.nodes[row]
    there_is = None if node is None else (node.metadata.labels or {}).get(key)
    return OtherLabel(key, (pod.pod.spec.node_selector or {})[key], there_is, nodes.names[row])


def _where_it_helps(rejected: RejectedNodes, change: OwnChange) -> OwnChange | None:
    """Return the change with a node that it makes the pod fit on, its own first; None where there is none.

    Its own may keep its room for a nominated pod, which no filter's first verdict tells.
    """
    nodes = rejected.decision.nodes
    tried, row = changed(rejected.decision.pod.pod, change), nodes.row(change.node)
    if tried is None or row is None:
        return None
    evaluation = rejected.decision.evaluation.anew()
    evaluation.refresh(PodInfo(tried))
    if evaluation.feasible[row]:
        return change
    rows = nodes.rows()
    others = rows[evaluation.feasible[rows]]
    return structs.replace(change, node=nodes.names[rejected.order.first(others)]) if len(others) else None


def _with_less(pod: Pod, resource: str, by: int) -> Pod | None:
    """Return the pod asking for exactly `by` less, all of it in its first container; None if its overhead is more.

    No filter reads which container asks for what.
    """
    spec, nothing = pod.spec, Pod().spec
    if len(spec.containers) + len(spec.init_containers or ()) > _MOST_CONTAINERS:
        return None
    overhead = Pod(spec=structs.replace(nothing, containers=[Container()], overhead=spec.overhead))
    left = _amount(pod, resource) - by - _amount(overhead, resource)
    if left < 0:
        return None
    first, *others = spec.containers
    of_pod = spec.resources
    if of_pod is not None and resource in {**(of_pod.requests or {}), **(of_pod.limits or {})}:
        of_pod = _asking(of_pod, resource, left)
    containers = [_container_asking(first, resource, left), *(_container_asking(each, resource, 0) for each in others)]
    init = [_container_asking(each, resource, 0) for each in spec.init_containers or ()] or None
    return structs.replace(
        pod, spec=structs.replace(spec, containers=containers, init_containers=init, resources=of_pod)
    )


def _amount(pod: Pod, resource: str) -> int:
    return PodInfo(pod).requests.amounts.get(resource, 0)


def _container_asking(container: Container, resource: str, amount: int) -> Container:
    return structs.replace(container, resources=_asking(container.resources, resource, amount))


def _asking(resources: ResourceRequirements | None, resource: str, amount: int) -> ResourceRequirements:
    given = resources or ResourceRequirements()
    # A request that is left out would be as large as the limit.
    requests = dict(given.requests or {}) | {resource: f"{amount}m" if resource == CPU else str(amount)}
    return structs.replace(given, requests=requests)
