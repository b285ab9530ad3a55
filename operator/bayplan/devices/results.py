"""What a search comes to: results, configuration and the nodes from which the devices are reached, or a refusal.

Source: D/structured/internal/incubating/allocator_incubating.go, Allocate and createNodeSelector.
"""

import uuid
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from bayplan.api.claim_objects import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from bayplan.api.objects import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.devices.candidates import Pick
from bayplan.devices.offers import Offer
from bayplan.devices.requests import AllocationError, Request


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the claims cannot be allocated on a node; the allocator answers with it, and the plugin tells it.

    One that `fails` ends the attempt where no other filter rejects the node: nobody knows whether it has the devices,
    because the search had no time left (`timed_out`) or because the claims, or what they name, allow of no answer.
    """

    text: str
    fails: bool = False
    timed_out: bool = False


NOT_ALL: Final = Refusal("cannot allocate all claims")
INVALID: Final = Refusal("invalid resource pools were encountered")
TIMED_OUT: Final = Refusal("timed out trying to allocate devices", fails=True, timed_out=True)


def allocation_of(
    claim: ResourceClaim,
    picks: Sequence[tuple[Pick, Offer]],
    chosen: Mapping[int, Request],
    node_name: str,
) -> AllocationResult:
    """The allocation of a claim: picks with the devices of this node, and by request the alternative that was chosen.

    Each share gets a new random ID.

    Raises:
        AllocationError: a slice has a node selector of more than one term.
    """
    results = [_result(pick, offer) for pick, offer in picks]
    selector = _node_selector(claim, [offer for _, offer in picks], node_name)
    return AllocationResult(DeviceAllocationResult(results, _configs(claim, chosen) or None), selector)


def _result(pick: Pick, offer: Offer) -> DeviceRequestAllocationResult:
    request, wire = pick.request, offer.wire
    return DeviceRequestAllocationResult(
        request=request.names[1],
        driver=offer.slice.spec.driver,
        pool=offer.slice.spec.pool.name,
        device=wire.name,
        admin_access=True if request.admin else None,
        tolerations=request.wire.tolerations,
        binding_conditions=wire.binding_conditions,
        binding_failure_conditions=wire.binding_failure_conditions,
        share_id=str(uuid.uuid4()) if offer.multiple else None,
        consumed_capacity=(dict(pick.want.texts) or None) if offer.multiple else None,
    )


def _configs(claim: ResourceClaim, chosen: Mapping[int, Request]) -> list[DeviceAllocationConfiguration]:
    """The configuration of each class once, then the claim's; one for all requests names none."""
    by_class: dict[str, list[Request]] = {}
    for request in chosen.values():
        by_class.setdefault(request.wire.device_class_name, []).append(request)
    configs: list[DeviceAllocationConfiguration] = []
    for requests in by_class.values():
        configs += (
            DeviceAllocationConfiguration("FromClass", [request.names[1] for request in requests], config.opaque)
            for config in requests[0].device_class.spec.config or ()
        )
    for config in claim.spec.devices.config or ():
        if not config.requests or any(_names(config.requests, request) for request in chosen.values()):
            configs.append(DeviceAllocationConfiguration("FromClaim", config.requests or None, config.opaque))
    return [
        msgspec.structs.replace(config, requests=None)
        if all(_names(config.requests or (), request) for request in chosen.values())
        else config
        for config in configs
    ]


def _names(names: Sequence[str], request: Request) -> bool:
    return request.names[0] in names or request.names[1] in names


def _node_selector(claim: ResourceClaim, offers: Sequence[Offer], node_name: str) -> NodeSelector | None:
    fields: dict[Hashable, NodeSelectorRequirement] = {}
    labels: dict[Hashable, NodeSelectorRequirement] = {}
    for offer in offers:
        where = offer.wire if offer.slice.spec.per_device_node_selection else offer.slice.spec
        if where.node_name is not None or offer.wire.binds_to_node:
            only = NodeSelectorRequirement("metadata.name", "In", [node_name])
            return NodeSelector([NodeSelectorTerm(match_fields=[only])])
        terms = (where.node_selector and where.node_selector.node_selector_terms) or ()
        if len(terms) > 1:
            raise AllocationError(
                f"create NodeSelector for claim {claim.metadata.name}: "
                f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            )
        for term in terms:
            for known, requirements in ((fields, term.match_fields), (labels, term.match_expressions)):
                for each in requirements or ():
                    known.setdefault((each.key, each.operator, frozenset(each.values or ())), each)
    if not fields and not labels:
        return None
    return NodeSelector([NodeSelectorTerm([*labels.values()] or None, [*fields.values()] or None)])
