"""Plans for pods with devices: those of a pod that moves are free, and its own again where nothing comes of it."""

import json

import pytest
from tests.plan.plans import reasons, steps
from tests.simulate.test_claims import CLASS_OF_DEVICES, pod_with_devices
from tests.simulate.test_released_claims import NODES_WITH_DEVICES, OWN, SHARED, claim_of, running, sized

from bayplan.api.claim_objects import ResourceClaim
from bayplan.config.load import default_configuration
from bayplan.plan.goals import fit, free
from bayplan.plan.rehearsal import Rehearsal
from bayplan.simulate.cluster import read_cluster
from bayplan.simulate.simulator import Simulator

OF_P = claim_of("p-own-x7k", "p", owner="p")
P = running("p", OWN, "p-own-x7k")


@pytest.fixture
def scene(tmp_path):
    """A cluster of two nodes with a device each, and its pods by name."""

    def scene(*objects):
        path = tmp_path / "cluster.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*NODES_WITH_DEVICES, *objects]}))
        cluster = read_cluster([str(path)])
        return Rehearsal(Simulator(default_configuration()), cluster), {each.name: each for each in cluster.pods}

    return scene


def claims_of(rehearsal):
    """What each claim has, and who uses it."""
    claims = rehearsal.simulator.cache.listers.of(ResourceClaim).objects.values()
    return {
        each.metadata.name: (each.status.allocation, {user.name for user in each.status.reserved_for or ()})
        for each in claims
    }


def test_a_pod_makes_room_that_has_the_only_device(scene):
    waits, busy = sized(pod_with_devices("waits", [OWN]), 2), sized(pod_with_devices("busy", []), 2, nodeName="n2")
    rehearsal, pods = scene(OF_P, P, waits, busy)
    plan = fit(rehearsal, pods["waits"])
    assert (steps(plan), plan.fits_on) == ([("p", "n1", "n2")], "n1")


def test_room_is_made_for_a_pod_that_asks_for_what_a_class_provides(scene):
    provided = {**CLASS_OF_DEVICES, "metadata": {"name": "named"}}
    provided["spec"] = {**CLASS_OF_DEVICES["spec"], "extendedResourceName": "example.com/gpu"}
    waits, busy = pod_with_devices("waits", []), sized(pod_with_devices("busy", []), 2, nodeName="n2")
    asked = {"cpu": 2, "example.com/gpu": 1}
    waits["spec"]["containers"][0]["resources"] = {"requests": asked, "limits": {"example.com/gpu": 1}}
    rehearsal, pods = scene(provided, OF_P, P, waits, busy)
    plan = fit(rehearsal, pods["waits"])
    assert (steps(plan), plan.fits_on) == ([("p", "n1", "n2")], "n1")


def test_a_pod_stays_that_would_not_give_the_device(scene):
    waits, other = sized(pod_with_devices("waits", [OWN]), 2), sized(running("other", OWN, "none"), 0)
    rehearsal, pods = scene(OF_P, P, claim_of("q", "q", node="n2"), running("q", SHARED, "q", node="n2"), waits, other)
    before = claims_of(rehearsal)
    assert [each.name for each in rehearsal.must_leave(pods["waits"], "n1")] == ["p"]
    assert claims_of(rehearsal) == before


def test_a_pod_whose_claim_is_missing_is_told_that_and_not_that_there_is_no_room(scene):
    rehearsal, pods = scene(OF_P, P, pod_with_devices("waits", [{"name": "own", "resourceClaimTemplateName": "none"}]))
    assert reasons(fit(rehearsal, pods["waits"])) == {"waits": 'pod "default/waits": ResourceClaim not created yet'}


@pytest.mark.parametrize(
    ("claim", "pod"), [(OF_P, P), (claim_of("pool", "p"), running("p", SHARED, "pool"))], ids=["own", "shared"]
)
def test_what_is_taken_back_gives_devices_back_as_well(scene, claim, pod):
    waits, busy = sized(pod_with_devices("waits", [OWN]), 2), sized(pod_with_devices("busy", []), 2, nodeName="n2")
    rehearsal, pods = scene(claim, pod, waits, busy)
    before = claims_of(rehearsal)
    rehearsal.cordon("n1")
    assert rehearsal.move(pods["p"], "n1").to == "n2"
    rehearsal.uncordon("n1")
    assert rehearsal.simulator.cache.node_of(pods["waits"].uid) == "n1"
    rehearsal.take_back()
    assert rehearsal.simulator.cache.node_of(pods["waits"].uid) is None
    assert claims_of(rehearsal) == before


def test_a_pod_that_finds_no_device_elsewhere_keeps_its_own(scene):
    rehearsal, _ = scene(OF_P, P, claim_of("q", "q", node="n2"), running("q", SHARED, "q", node="n2"))
    before = claims_of(rehearsal)
    plan = free(rehearsal, ["n1"])
    assert "1 cannot allocate all claims" in reasons(plan)["p"]
    assert claims_of(rehearsal) == before


def test_a_claim_of_several_pods_is_free_once_all_have_left(scene):
    waits, busy = sized(pod_with_devices("waits", [OWN]), 2), sized(pod_with_devices("busy", []), 2, nodeName="n2")
    rehearsal, pods = scene(claim_of("pool", "p", "q"), *(running(name, SHARED, "pool") for name in "pq"), waits, busy)
    before = claims_of(rehearsal)
    assert {each.name for each in rehearsal.must_leave(pods["waits"], "n1")} == {"p", "q"}
    assert claims_of(rehearsal) == before
    rehearsal.cordon("n1")
    assert "resourceclaim not available on the node" in rehearsal.move(pods["p"], "n1").reason
    assert claims_of(rehearsal) == before
