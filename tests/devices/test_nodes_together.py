"""What nodes answer when all are asked at once, where those that are alike share one search."""

import msgspec
import pytest
from tests.devices.device_builders import still
from tests.oracle.dice import Dice
from tests.oracle.families.devices import generate

from bayplan.api.claim_objects import ResourceClaim, ResourceClaimTemplate
from bayplan.api.device_objects import DeviceClass, DeviceTaintRule, ResourceSlice
from bayplan.api.kinds import CLAIM_TEMPLATES, RESOURCES
from bayplan.api.objects import Node
from bayplan.devices.allocated_state import AllocatedState
from bayplan.devices.allocator import Allocator
from bayplan.simulate.documents import Decoder
from bayplan.simulate.looked_up import looked_up

RESOURCE_OF = {resource.type: resource for resource in (*RESOURCES, CLAIM_TEMPLATES)}


def objects(scene, kind):
    """Those of a kind, as the API server stores them."""
    resource, decode = RESOURCE_OF[kind], Decoder(kind)
    return [looked_up(decode(each), resource) for each in scene.objects if each["kind"] == resource.kind]


def told(answer, claim, node):
    """All that the answer of a node says; the text of an error may name another claim and its devices."""
    if not hasattr(answer, "allocations"):
        return "error" if answer.fails else answer.text
    allocations = msgspec.to_builtins(answer.allocations([claim], node))
    for result in (each for allocation in allocations for each in allocation["devices"].get("results", ())):
        result.pop("shareID", None)
    return allocations, answer.choices


@pytest.mark.parametrize("seed", range(60))
def test_nodes_that_are_asked_together_answer_as_each_does_alone(seed):
    scene = generate(Dice("together", seed, 0))
    classes = {each.metadata.name: each for each in objects(scene, DeviceClass)}
    slices, rules = objects(scene, ResourceSlice), objects(scene, DeviceTaintRule)
    nodes, state = [Decoder(Node)(each) for each in scene.nodes], AllocatedState()
    claims = objects(scene, ResourceClaim)
    for claim in claims:
        state.observe(claim.metadata.name, claim.status.allocation)
    wanted = [each.spec.spec for each in objects(scene, ResourceClaimTemplate)]
    wanted += [claim.spec for claim in claims if claim.status.allocation is None]

    def allocator():
        return Allocator(slices, classes, rules, state)

    together = allocator()
    for number, spec in enumerate(wanted):
        claim = ResourceClaim(spec=spec)
        for packs in (True, False):
            answers = together.allocate([claim], nodes, still, packs=packs)
            alone = [allocator().allocate([claim], [node], still, packs=packs)[0] for node in nodes]
            for node, one, other in zip(nodes, answers, alone, strict=True):
                assert told(one, claim, node) == told(other, claim, node)
        granted = [(each, node) for each, node in zip(answers, nodes, strict=True) if hasattr(each, "allocations")]
        if granted:
            grant, where = granted[-1]
            state.observe(f"new-{number}", grant.allocations([claim], where)[0])
