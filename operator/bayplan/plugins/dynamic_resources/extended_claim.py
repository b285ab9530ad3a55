"""The claim that stands for a pod's extended resources on nodes where devices provide them.

Upstream: dynamicresources/extendeddynamicresources.go.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from bayplan.api.claim_objects import (
    ClaimAnnotations,
    ClaimMeta,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from bayplan.api.meta_objects import OwnerReference, controller_of
from bayplan.api.objects import Container, Pod
from bayplan.api.quantity import exact_nano
from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import is_extended
from bayplan.devices.results import Refusal
from bayplan.plugins.extended_resources import PREFIX

NOT_NAMED_YET: Final = "<extended-resources>"
"""The claim's name until the API server gives it one; none that a claim can have."""
_LEFT_OVER: Final = Refusal("cannot schedule extended resource claim")
_NOT_OFFERED: Final = Refusal("cannot fit resource")
_ONE: Final = 10**9
_tries = count()
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class SpecialClaim:
    """What is asked of devices on some nodes, and what the pod's status will say of it: who gets which request."""

    claim: ResourceClaim
    mappings: Sequence[dict[str, Any]]


@dataclass(slots=True)
class ExtendedClaim:
    """What a pod asks of the resources that `classes` provide; DynamicResources asks for it node by node.

    A claim that an earlier attempt left is `left_over`: its devices may not do any more, so it has to go first.
    """

    pod: PodInfo
    classes: Mapping[str, str]
    left_over: ResourceClaim | None
    _made: dict[tuple[str, ...], SpecialClaim] = field(default_factory=dict)
    _try: int = field(default_factory=_tries.__next__)
    """What tells the claims of this attempt from those of one before, whose requests may yet be carried out."""

    def parts(self, nodes: NodeTable, rows: Rows) -> Iterator[tuple[Places, SpecialClaim | Refusal | None]]:
        """Divide the rows by what devices are to provide there, None if device plugins provide everything."""
        if self.left_over is not None:
            yield np.arange(len(rows)), _LEFT_OVER
            return
        if not len(rows):
            return
        by_devices = [nodes.offered(name)[rows] == 0 for name in self.classes]
        ways, way_of = np.unique([self._lacks(nodes, rows), *by_devices], axis=1, return_inverse=True)
        for number, (lacks, *way) in enumerate(ways.T.tolist()):
            names = tuple(name for name, is_so in zip(self.classes, way, strict=True) if is_so)
            given = self._of(names) if names else None
            yield np.flatnonzero(way_of.ravel() == number), _NOT_OFFERED if lacks else given

    def _lacks(self, nodes: NodeTable, rows: Rows) -> NDArray[np.bool_]:
        """Return which nodes do not list a resource that no class provides."""
        lacks = np.zeros(len(rows), dtype=np.bool_)
        others = [
            name
            for name in self.pod.requests.amounts
            if name not in self.classes and (is_extended(name) or name.startswith(PREFIX))
        ]
        if others:
            there = [node for row in rows.tolist() if (node := nodes.nodes[row]) is not None]
            lacks[:] = [any(name not in (node.status.allocatable or ()) for name in others) for node in there]
        return lacks

    def _of(self, names: tuple[str, ...]) -> SpecialClaim:
        known = self._made.get(names)
        if known is None:
            requests, mappings = requests_of(self.pod.pod, {name: self.classes[name] for name in names})
            meta, pod = self.pod.pod.metadata, self.pod
            owner = OwnerReference("v1", "Pod", pod.name, pod.uid, controller=True)
            named = ClaimMeta(
                name=NOT_NAMED_YET,
                namespace=meta.namespace,
                uid=f"{NOT_NAMED_YET}/{pod.uid}/{self._try}",
                generate_name=assumed_name(pod),
                annotations=ClaimAnnotations(extended_resource_claim="true"),
                owner_references=[owner],
            )
            claim = ResourceClaim(named, ResourceClaimSpec(DeviceClaim(requests)))
            known = self._made[names] = SpecialClaim(claim, mappings)
        return known


def pod_of(claim: ResourceClaim) -> str:
    """Return the UID of the pod whose extended resources the claim stands for; empty if it is another kind of claim."""
    annotations = claim.metadata.annotations
    if annotations is None or annotations.extended_resource_claim != "true":
        return ""
    owner = controller_of(claim.metadata)
    return "" if owner is None else owner.uid


def assumed_name(pod: PodInfo) -> str:
    """Return the name of the claim where nothing is written; a real one ends in five random letters."""
    return f"{pod.name}-extended-resources-"


def assumed(claim: ResourceClaim, pod: PodInfo) -> ResourceClaim:
    """Return the claim as if the API server had made it."""
    return replace(claim, metadata=replace(claim.metadata, name=assumed_name(pod)))


def requests_of(pod: Pod, classes: Mapping[str, str]) -> tuple[list[DeviceRequest], list[dict[str, Any]]]:
    """Return the requests for resources of these classes, in order of name, and which container uses which of them.

    Containers that stay have their own. An init container that ends uses those of the containers after it; the most
    that one of them still lacks is one more request, which all of these use.
    """
    inits = pod.spec.init_containers or []
    containers = [*inits, *pod.spec.containers]
    counts: dict[str, tuple[str, int]] = {}
    mappings: list[dict[str, Any]] = []
    for resource in sorted(classes):
        wanted = {at: amount for at, each in enumerate(containers) if (amount := _amount(each, resource))}
        names = {at: f"container-{at}-request-{_place(containers[at], resource)}" for at in wanted}
        staying = {at: n for at, n in wanted.items() if at >= len(inits) or containers[at].restart_policy == "Always"}
        counts |= {names[at]: (classes[resource], amount) for at, amount in staying.items()}
        used: list[tuple[int, str]] = []
        lacking: dict[int, int] = {}
        for at in wanted.keys() - staying.keys():
            left = wanted[at]
            for later, amount in staying.items():
                if later > at and left > 0:
                    used.append((at, names[later]))
                    left -= amount
            if left > 0:
                lacking[at] = left
        if lacking:
            most = min(lacking, key=lambda at: (-lacking[at], at))
            counts[names[most]] = classes[resource], lacking[most]
            used += [(at, names[most]) for at in lacking]
        used = [*((at, names[at]) for at in staying), *sorted(used, key=lambda each: each[0])]
        mappings += [
            {"containerName": containers[at].name, "resourceName": resource, "requestName": name} for at, name in used
        ]
    requests = [
        DeviceRequest(name, ExactDeviceRequest(class_name, allocation_mode="ExactCount", count=count))
        for name, (class_name, count) in sorted(counts.items())
    ]
    return requests, mappings


def _amount(container: Container, resource: str) -> int:
    requests = (container.resources and container.resources.requests) or {}
    amount, rest = divmod(exact_nano(requests.get(resource, 0)), _ONE)
    return 0 if rest else amount


def _place(container: Container, resource: str) -> int:
    """Return where the resource stands among those that the container requests, by name."""
    return sorted((container.resources and container.resources.requests) or ()).index(resource)
