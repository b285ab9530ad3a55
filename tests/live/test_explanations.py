"""What the running scheduler says of a pod when it is asked, and that asking changes nothing."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_pod, make_pod_info
from tests.live.live_scene import LiveScene
from tests.simulate.test_claims import CLASS_OF_DEVICES
from tests.simulate.test_released_claims import NODES_WITH_DEVICES, OWN, SHARED, claim_of, running

from bayplan.api.claim_objects import ResourceClaim
from bayplan.api.live_paths import RefusedQuestionError
from bayplan.simulate.cluster import read_cluster


async def test_a_pod_that_fits_nowhere_is_explained_with_where_it_waits_and_what_would_wake_it():
    scene = LiveScene()
    scene.node("n1", cpu="4")
    scene.node("n2", cpu="2")
    scene.pod("big", cpu="5")
    await scene.attempt()
    answer = await scene.explain("big")
    assert (answer["state"], answer["node"], answer["schedulerName"]) == ("pending", None, "bayplan")
    assert answer["queue"]["queue"] == "unschedulable"
    assert answer["queue"]["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert answer["queue"]["rejectedBy"] == ["NodeResourcesFit"]
    assert (answer["queue"]["position"], answer["queue"]["attempts"]) == (None, 1)
    assert answer["message"] == answer["queue"]["message"]
    assert {"event": "AssignedPodDelete", "plugin": "NodeResourcesFit"} in answer["wokenBy"]
    assert [each["message"] for each in answer["attempts"]] == [answer["message"]]
    (group,) = answer["explanation"]["groups"]
    assert (group["count"], group["plugin"], group["causes"][0]["mostFree"]) == (2, "NodeResourcesFit", 4000)
    assert answer["explanation"]["changes"] == [{"kind": "lessOfResource", "resource": "cpu", "by": 1000, "node": "n1"}]


async def test_a_pod_that_was_not_tried_yet_is_explained_with_who_is_ahead():
    scene = LiveScene()
    scene.node("n1", cpu="4")
    for name, priority in (("low", 1), ("high", 9), ("mid", 5)):
        scene.pod(name, priority=priority)
    answer = await scene.explain("low")
    assert (answer["queue"]["queue"], answer["queue"]["position"]) == ("active", 3)
    assert [(each["name"], each["priority"]) for each in answer["ahead"]] == [("high", 9), ("mid", 5)]
    assert answer["explanation"]["chosen"]["node"] == "n1"
    assert answer["message"] is None


async def test_a_pod_behind_a_gate_says_which():
    scene = LiveScene()
    scene.node("n1", cpu="4")
    scene.pod("held", gates=["team/ready"])
    answer = await scene.explain("held")
    assert answer["queue"]["queue"] == "gated"
    assert "team/ready" in answer["queue"]["message"]


async def test_a_pod_that_the_api_server_shows_on_a_node_may_as_well_go_elsewhere():
    scene = LiveScene()
    scene.node("n1", cpu="4")
    scene.node("n2", cpu="4")
    scene.cache.set_pod(make_pod_info("p", cpu="1", node="n1"))
    answer = await scene.explain("p")
    assert (answer["state"], answer["node"], answer["explanation"]["feasible"]) == ("bound", "n1", 2)


async def test_a_pod_on_a_node_is_explained_as_if_it_were_not_there():
    scene = LiveScene()
    await scene.first_attempt("p", cpu="1")
    answer = await scene.explain("p")
    assert (answer["state"], answer["node"], answer["queue"]) == ("assumed", "n1", None)
    assert answer["explanation"]["chosen"]["node"] == "n1"
    assert answer["explanation"]["feasible"] == 1


def _with_extended_resource(name):
    pod = running(name, OWN, "")
    pod["spec"]["resourceClaims"], pod["status"]["resourceClaimStatuses"] = [], []
    amounts = {"cpu": 1, "example.com/gpu": 1}
    pod["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": {"example.com/gpu": 1}}
    claim = claim_of(f"{name}-extended-resources-abcde", name, owner=name)
    claim["metadata"]["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
    return claim, pod


@pytest.mark.parametrize(
    ("claim", "pod", "feasible"),
    [
        (claim_of("p-own-x7k", "p", owner="p"), running("p", OWN, "p-own-x7k"), 2),
        (*_with_extended_resource("p"), 2),
        (claim_of("pool", "p"), running("p", SHARED, "pool"), 2),
        (claim_of("pool", "p", "other"), running("p", SHARED, "pool"), 1),
    ],
    ids=["own", "extended", "shared", "in use"],
)
async def test_a_pod_on_a_node_is_explained_as_if_its_devices_were_free(tmp_path, claim, pod, feasible):
    named = {**CLASS_OF_DEVICES, "spec": {**CLASS_OF_DEVICES["spec"], "extendedResourceName": "example.com/gpu"}}
    objects = [*(each for each in NODES_WITH_DEVICES if each is not CLASS_OF_DEVICES), named, claim, pod]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    cluster, scene = read_cluster([str(path)]), LiveScene()
    for each in cluster.nodes:
        scene.cache.set_node(each)
    for each in cluster.pods:
        scene.cache.set_pod(each)
    scene.cache.listers.fill(cluster.looked_up)
    before = {**scene.cache.listers.of(ResourceClaim).objects}
    answer = await scene.explain("p")
    assert (answer["node"], answer["explanation"]["feasible"]) == ("n1", feasible)
    assert scene.cache.listers.of(ResourceClaim).objects == before


async def test_a_nominated_pod_says_where_its_room_is_kept_and_for_how_long():
    scene = LiveScene()
    scene.node("n1", cpu="1")
    scene.pod("low")
    await scene.attempt()
    scene.pod("high", nominated="n1")
    answer = await scene.explain("high")
    assert answer["nomination"]["node"] == "n1"
    assert answer["nomination"]["ageSeconds"] >= 0


async def test_a_pod_that_nobody_knows_is_not_found():
    scene = LiveScene()
    with pytest.raises(RefusedQuestionError, match="there is no pod default/nobody") as raised:
        await scene.explain("nobody")
    assert raised.value.status == 404


async def test_a_pod_of_another_scheduler_says_whose_it_is():
    scene = LiveScene()
    scene.node("n1")
    scene.assigned.on_add(make_pod("theirs", node="n1", scheduler_name="other"))
    with pytest.raises(RefusedQuestionError, match="'other', and this one schedules for bayplan") as raised:
        await scene.explain("theirs")
    assert raised.value.status == 404


async def test_nothing_is_told_before_the_cluster_is_listed():
    scene = LiveScene()
    scene.synced = False
    with pytest.raises(RefusedQuestionError, match="still being listed") as raised:
        await scene.explain("p")
    assert (raised.value.status, raised.value.retry_after) == (503, 1)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3), st.booleans()), min_size=1, max_size=8),
    st.integers(1, 3),
)
async def test_asking_changes_nothing_and_says_what_the_next_attempt_then_does(pods, nodes):
    scene = LiveScene()
    for number in range(nodes):
        scene.node(f"n{number}", cpu="6", pods=3)
    for number, (cpu, priority, is_tried) in enumerate(pods):
        scene.pod(f"p{number}", cpu=str(cpu), priority=priority)
        if is_tried:
            await scene.attempt()
    before = scene.held()
    answers = {f"p{number}": await scene.explain(f"p{number}") for number in range(len(pods))}
    assert scene.held() == before
    scene.check()
    queued = scene.step()
    if queued is not None:
        told = answers[queued.uid]["explanation"]["chosen"]
        placed = scene.cache.node_of(queued.uid)
        assert placed == (told and told["node"])
