"""What becomes of claims when their pods leave: in drains, preemption, replays and plans."""

import json

import pytest
from msgspec import convert
from tests.simulate.test_claims import (
    CLASS,
    CLASS_OF_DEVICES,
    GPUS,
    NODE,
    SLICE,
    outcome,
    pod,
    pod_with_devices,
)

from bayplan.api.claim_objects import ResourceClaim
from bayplan.api.storage_objects import PersistentVolumeClaim
from bayplan.cache.listers import Listers
from bayplan.config.load import default_configuration
from bayplan.simulate.changes import Changes
from bayplan.simulate.cluster import read_cluster
from bayplan.simulate.released_claims import ClaimFollower
from bayplan.simulate.repack import repacked
from bayplan.simulate.simulator import Simulator


def running(name, entry, claim, node="n1", **meta):
    made = [{"name": entry["name"], "resourceClaimName": claim}] if "resourceClaimTemplateName" in entry else []
    pod = pod_with_devices(name, [entry], phase="Running", resourceClaimStatuses=made)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}
    pod["metadata"] |= {"uid": name, "resourceVersion": "1", "ownerReferences": [owner], **meta}
    pod["spec"]["nodeName"] = node
    return pod


def claim_of(name, *users, owner=None, node="n1"):
    result = {"request": "one", "driver": "gpu.example.com", "pool": node, "device": "gpu-0"}
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    selector = {"nodeSelectorTerms": [{"matchFields": fields}]}
    owners = (
        [] if owner is None else [{"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": owner, "controller": True}]
    )
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "uid": name, "resourceVersion": "1", "ownerReferences": owners},
        "spec": {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": "gpu"}}]}},
        "status": {
            "allocation": {"devices": {"results": [result]}, "nodeSelector": selector},
            "reservedFor": [{"resource": "pods", "name": each, "uid": each} for each in users],
        },
    }


def elsewhere(kind, node):
    """The node or the slice under another name."""
    spec = (
        {}
        if "spec" not in kind
        else {"spec": {**kind["spec"], "nodeName": node, "pool": {**kind["spec"]["pool"], "name": node}}}
    )
    return {**kind, "metadata": {"name": f"{node}-gpus" if spec else node}, **spec}


NODES_WITH_DEVICES = [NODE, SLICE, elsewhere(NODE, "n2"), elsewhere(SLICE, "n2"), GPUS, CLASS_OF_DEVICES]
OWN = {"name": "own", "resourceClaimTemplateName": "gpu"}
SHARED = {"name": "shared", "resourceClaimName": "pool"}


@pytest.fixture
def changed(tmp_path):
    def changed(*objects, **changes):
        (tmp_path / "in.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        return read_cluster([str(tmp_path / "in.json")], Changes(**changes))

    return changed


@pytest.mark.parametrize(
    ("entry", "claim"),
    [(OWN, claim_of("p-own-x7k", "p", owner="p")), (SHARED, claim_of("pool", "p"))],
    ids=["own", "shared"],
)
def test_a_pod_that_is_evicted_gets_devices_elsewhere(changed, entry, claim):
    pod = running("p", entry, claim["metadata"]["name"])
    assert outcome(changed(*NODES_WITH_DEVICES, claim, pod, drain=["n1"])) == "n2"


def test_a_claim_that_others_use_keeps_its_devices(changed):
    pods = [running(name, SHARED, "pool") for name in "pq"]
    cluster = changed(*NODES_WITH_DEVICES, claim_of("pool", "p", "q"), *pods, remove=["pod/p"])
    (claim,) = (each for each in cluster.looked_up if isinstance(each, ResourceClaim))
    assert claim.status.allocation is not None
    assert [each.name for each in claim.status.reserved_for] == ["q"]


def test_devices_of_a_pod_that_is_removed_are_free(changed):
    pod, waits = running("p", OWN, "p-own-x7k"), pod_with_devices("waits", [OWN])
    objects = [NODE, SLICE, GPUS, CLASS_OF_DEVICES, claim_of("p-own-x7k", "p", owner="p"), pod, waits]
    assert "cannot allocate all claims" in outcome(changed(*objects))
    assert outcome(changed(*objects, remove=["pod/p"])) == "n1"


def test_claims_of_a_pod_that_runs_or_that_is_about_to_stay_as_they_are(changed):
    waits = pod_with_devices("q", [SHARED])
    waits["metadata"] |= {"uid": "q", "resourceVersion": "1"}
    claims = [claim_of("p-own-x7k", "p", owner="p"), claim_of("pool", "q", node="n2")]
    cluster = changed(*NODES_WITH_DEVICES, *claims, running("p", OWN, "p-own-x7k"), waits, drain=["n2"])
    kept = [each for each in cluster.looked_up if isinstance(each, ResourceClaim)]
    assert all(each.status.allocation is not None for each in kept)
    assert len(kept) == 2


def test_pods_that_are_placed_anew_bring_no_devices_along(changed):
    pods = [running("p", OWN, "p-own-x7k"), running("q", OWN, "q-own-x7k", node="n2")]
    claims = [claim_of("p-own-x7k", "p", owner="p"), claim_of("q-own-x7k", "q", owner="q", node="n2")]
    cluster = changed(*NODES_WITH_DEVICES, *claims, *pods)
    simulator = Simulator(default_configuration())
    simulator.add(repacked(cluster, ["bayplan"]).objects)
    assert {each.attempts[-1].node for each in simulator.run().pods} == {"n1", "n2"}


def test_a_pod_whose_own_claim_keeps_it_from_a_node_is_tried_again_without_its_devices(changed):
    waits = pod_with_devices("q", [SHARED])
    waits["spec"]["nodeSelector"] = {"there": "yes"}
    node = elsewhere(NODE, "n2")
    node["metadata"]["labels"] = {"there": "yes"}
    cluster = changed(NODE, SLICE, node, elsewhere(SLICE, "n2"), GPUS, CLASS_OF_DEVICES, claim_of("pool"), waits)
    assert outcome(cluster) == "n2"


def sized(pod, cpu, **spec):
    pod["spec"] |= {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **spec}
    return pod


def victims(entry, claim, *others):
    """A node that is full of a pod with a device, one that evicts it, and one that then wants the device."""
    high, waits = sized(pod_with_devices("high", []), 2, priority=9), pod_with_devices("waits", [OWN])
    victim = sized(running("victim", entry, claim["metadata"]["name"]), 3)
    return [NODE, SLICE, GPUS, CLASS_OF_DEVICES, claim, victim, high, waits, *others]


def outcomes(cluster):
    simulator = Simulator(default_configuration())
    simulator.add(cluster)
    return {each.name: each.attempts[-1].node for each in simulator.run().pods}


@pytest.mark.parametrize(
    ("entry", "claim"),
    [(OWN, claim_of("victim-own-x7k", "victim", owner="victim")), (SHARED, claim_of("pool", "victim"))],
    ids=["own", "shared"],
)
def test_devices_of_a_pod_that_was_preempted_are_free(changed, entry, claim):
    assert outcomes(changed(*victims(entry, claim))) == {"high": "n1", "waits": "n1"}


def test_devices_that_others_use_beside_a_pod_that_was_preempted_are_not_free(changed):
    stays = sized(running("stays", SHARED, "pool"), 0)
    found = outcomes(changed(*victims(SHARED, claim_of("pool", "victim", "stays"), stays)))
    assert found == {"high": "n1", "waits": None}


def test_devices_for_extended_resources_of_a_pod_that_departs_are_free(changed):
    provided = {**CLASS_OF_DEVICES, "spec": {**CLASS_OF_DEVICES["spec"], "extendedResourceName": "example.com/gpu"}}
    amounts = {"example.com/gpu": 1}
    pods = [pod_with_devices(name, []) for name in "ab"]
    for each in pods:
        each["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    simulator = Simulator(default_configuration())
    cluster = changed(NODE, provided, SLICE, *pods)
    simulator.add(cluster)
    assert [each.attempts[-1].node for each in simulator.run().pods] == ["n1", None]
    simulator.depart(cluster.pods[0].uid)
    assert [each.attempts[-1].node for each in simulator.run().pods] == ["n1"]


def test_the_volume_claim_of_a_pod_that_departs_goes_with_it(changed):
    cluster = changed(NODE, CLASS, pod())
    simulator = Simulator(default_configuration())
    simulator.add(cluster)
    simulator.run()
    claims = simulator.cache.listers.of(PersistentVolumeClaim)
    assert list(claims.objects) == ["default/p-scratch"]
    simulator.depart(cluster.pods[0].uid)
    assert not claims.objects


@pytest.mark.parametrize("count", [3, 10_000], ids=["few", "more than a log holds"])
def test_claims_that_changed_are_told_once_as_they_were_and_as_they_are(count):
    listers = Listers()
    claims, follower = listers.of(ResourceClaim), ClaimFollower(listers)
    for number in range(count):
        claims.set(convert(claim_of(f"c{number}"), ResourceClaim))
    assert len(follower.follow()) == count
    first, second = claims.get("c0"), convert(claim_of("c0", "p"), ResourceClaim)
    claims.set(second)
    claims.delete("c1")
    told = follower.follow()
    assert (first, second) in told
    assert [after for before, after in told if before.metadata.name == "c1"] == [None]
    assert (len(told), follower.follow()) == (2, [])
