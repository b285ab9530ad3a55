"""What would come of pods on the cluster as it is: nothing is bound, and nothing is kept."""

import json

import pytest
from tests.builders import make_pod_info
from tests.group_builders import make_pod_group
from tests.live.live_scene import LiveScene, pod_body

from bayplan.api.live_paths import RefusedQuestionError
from bayplan.api.meta_objects import ObjectMeta
from bayplan.api.workload_objects import PriorityClass
from bayplan.cache.group_members import POD_GROUP_LABEL, GroupSource
from bayplan.live.simulation import MOST_PODS, KnownClasses


def deployment(replicas, cpu="1"):
    template = {"metadata": {"labels": {"app": "a"}}, "spec": pod_body(cpu=cpu)["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def owner(kind, name):
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"uid-of-{name}", "controller": True}


@pytest.fixture
async def scene():
    made = LiveScene()
    made.node("n1", cpu="4")
    made.node("n2", cpu="4")
    for number in range(3):
        made.pod(f"p{number}")
        await made.attempt()
    return made


async def test_a_pod_is_placed_as_it_would_be_and_nothing_is_kept(scene):
    before = scene.held()
    answer = await scene.simulate(pod_body())
    (pod,) = answer["pods"]
    (attempt,) = pod["attempts"]
    assert attempt["node"] == "n1"
    assert attempt["explanation"]["chosen"]["node"] == "n1"
    assert answer["count"] is None
    assert scene.held() == before
    scene.check()
    again = await scene.simulate(pod_body())
    assert again == answer


async def test_the_pods_of_a_workload_are_placed_one_after_the_other(scene):
    answer = await scene.simulate(deployment(6))
    nodes = [pod["attempts"][-1]["node"] for pod in answer["pods"]]
    assert sorted(nodes, key=str) == [None, "n1", "n2", "n2", "n2", "n2"]


async def test_whom_it_would_evict_is_said(scene):
    scene.pod("filler", cpu="4")
    await scene.attempt()
    answer = await scene.simulate(pod_body(cpu="4", priority=7))
    (pod,) = answer["pods"]
    assert pod["attempts"][0]["victims"] != []
    assert pod["attempts"][0]["nominatedNodeName"] in {"n1", "n2"}


@pytest.mark.parametrize(("count", "fits"), [("3", 3), ("max", 5)])
async def test_how_many_more_fit(scene, count, fits):
    before = scene.held()
    answer = await scene.simulate(pod_body(), count=count)
    assert answer["count"]["fits"] == fits
    assert answer["pods"] == []
    assert scene.held() == before


async def test_the_pod_groups_of_the_cluster_count_and_those_of_the_body_before_them(scene):
    for source in GroupSource:
        scene.groups.serve(source)
    scene.groups.set(make_pod_group("g", least=4, crd=True))
    scene.cache.set_pod(make_pod_info("there", cpu="1", node="n2", labels={POD_GROUP_LABEL: "g"}))

    async def outcomes(group, *others):
        pods = [pod_body(f"asked-{number}") for number in range(2)]
        for pod in pods:
            pod["metadata"]["labels"] = {POD_GROUP_LABEL: group}
        answer = await scene.simulate(*others, *pods)
        return {pod["attempts"][-1]["node"] or pod["attempts"][-1]["message"] for pod in answer["pods"]}

    own = {"apiVersion": str(GroupSource.CRD), "kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 3}}
    assert await outcomes("g") == {"waiting for minCount pods from a gang to appear in scheduling queue"}
    assert await outcomes("h") == {'waiting for pods\'s pod group "h" to appear in scheduling queue'}
    assert await outcomes("g", own) == {"n1", "n2"}
    scene.groups.set(make_pod_group("g", least=3, crd=True))
    assert await outcomes("g") == {"n1", "n2"}


async def test_a_pod_that_is_there_already_counts_as_another(scene):
    body = pod_body(name="p0")
    body["metadata"]["uid"] = "p0"
    body["spec"]["nodeName"] = "n2"
    (pod,) = (await scene.simulate(body))["pods"]
    assert pod["attempts"][0]["node"] == "n1"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "is no JSON"),
        (b"null", "is no JSON object"),
        (b"7", "is no JSON object"),
        (b"{}", "kind"),
        (b"[]", "Invalid value: list: must be an object with apiVersion and kind"),
        (b"{" * 5000, "is no JSON"),
        (b"[" * 100_000 + b"]" * 100_000, "JSON"),
        (b"\xff\xfe", "is no JSON"),
        (b"kind: Pod\n", "is no JSON"),
        (json.dumps({"apiVersion": "v1", "kind": "Status", "message": "no"}).encode(), "answer of the API server"),
        (json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}).encode(), "Node"),
        (json.dumps(pod_body(name="../../etc")).encode(), "metadata.name"),
        (json.dumps(pod_body(scheduler="other")).encode(), "spec.schedulerName"),
        (json.dumps(pod_body(tolerations=7)).encode(), "tolerations"),
        (json.dumps(pod_body(priorityClassName="nobody")).encode(), "PriorityClass with name 'nobody' was found$"),
        (json.dumps(deployment(MOST_PODS + 1)).encode(), "replicas"),
        (json.dumps(deployment(2**31)).encode(), "replicas"),
        (json.dumps(deployment(0)).encode(), "holds no pod"),
    ],
)
async def test_a_body_that_cannot_be_placed_is_refused_with_what_is_wrong(scene, body, said):
    before = scene.held()
    with pytest.raises(RefusedQuestionError, match=said) as raised:
        await scene.inspector.simulation(body, "")
    assert raised.value.status == 400
    assert scene.held() == before


async def test_absurd_amounts_are_answered(scene):
    (pod,) = (await scene.simulate(pod_body(cpu="1e1000000000")))["pods"]
    assert pod["attempts"][0]["node"] is None
    assert "2 Insufficient cpu" in pod["attempts"][0]["message"]


async def test_more_pods_than_one_answer_holds_are_refused(scene):
    with pytest.raises(RefusedQuestionError, match="more than the"):
        await scene.simulate(*[pod_body(name=f"p{number}") for number in range(MOST_PODS + 1)])


async def test_a_count_of_pods_that_are_not_alike_is_refused(scene):
    with pytest.raises(RefusedQuestionError, match="count: is of one pod"):
        await scene.simulate(pod_body("a"), pod_body("b"), count="max")


async def test_a_count_of_pods_of_a_workload_that_makes_no_two_alike_is_refused(scene):
    daemon = pod_body("node-agent-x7f2k")
    daemon["metadata"]["ownerReferences"] = [owner("DaemonSet", "node-agent")]
    with pytest.raises(RefusedQuestionError, match="count: a DaemonSet has one pod on each node"):
        await scene.simulate(daemon, count="max")
    stateful = {**deployment(2), "kind": "StatefulSet"}
    assert (await scene.simulate(stateful, count="max"))["count"]["fits"] == 5
    claims = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
    stateful["spec"]["volumeClaimTemplates"] = claims
    with pytest.raises(RefusedQuestionError, match="count: each pod of a StatefulSet has claims of its own"):
        await scene.simulate(stateful, count="max")


URGENT = PriorityClass(ObjectMeta(name="urgent"), value=1000)
NOT_ALLOWED = KnownClasses(problem="the API server answers 403 to who lists them")


@pytest.fixture
async def full():
    made = LiveScene()
    made.node("n1", cpu="1")
    made.cache.set_pod(make_pod_info("low", uid="low", node="n1", cpu="1", priority=5))
    return made


async def victims(scene, *objects):
    (pod,) = (await scene.simulate(*objects))["pods"]
    return pod["attempts"][0]["victims"]


async def test_a_pod_has_the_priority_of_its_class_in_the_cluster(full):
    full.known_classes = KnownClasses([URGENT])
    assert await victims(full, pod_body(priorityClassName="urgent")) == ["default/low"]


async def test_a_pod_without_a_class_has_the_priority_of_the_clusters_default(full):
    full.known_classes = KnownClasses([PriorityClass(ObjectMeta(name="usual"), value=10, global_default=True)])
    assert await victims(full, pod_body()) == ["default/low"]


async def test_a_class_beside_the_pod_takes_the_place_of_that_of_the_cluster(full):
    full.known_classes = KnownClasses([URGENT])
    other = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1}
    assert await victims(full, other, pod_body(priorityClassName="urgent")) == []


async def test_where_classes_are_not_known_it_is_said_why_and_what_to_do(scene):
    scene.known_classes = NOT_ALLOWED
    with pytest.raises(RefusedQuestionError) as raised:
        await scene.simulate(pod_body(priorityClassName="urgent"))
    assert "'urgent' was found; the API server answers 403 to who lists them: put the PriorityClass" in str(
        raised.value
    )
    (pod,) = (await scene.simulate(pod_body()))["pods"]
    assert pod["attempts"][0]["node"] is not None


async def test_a_claim_template_has_to_be_beside_the_pod_and_is_not_the_claim_of_a_pod_that_runs(scene):
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
    body = pod_body(resourceClaims=[{"name": "g", "resourceClaimTemplateName": "one"}])
    body["status"] = {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": "asked-g-x7k"}]}
    told = r"asked: spec.resourceClaims\[0\]: no ResourceClaimTemplate 'default/one' .* put it beside the pod"
    for count in ("", "1"):
        with pytest.raises(RefusedQuestionError, match=told):
            await scene.simulate(body, count=count)
    (pod,) = (await scene.simulate(template, body))["pods"]
    assert "device class gpu does not exist" in pod["attempts"][0]["message"]


async def test_a_runtime_class_has_to_be_beside_the_pod_and_counts(full):
    runtime = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "kata"},
        "handler": "kata",
        "scheduling": {"nodeSelector": {"runtime": "kata"}},
    }
    with pytest.raises(RefusedQuestionError, match="'kata' was found; those of the cluster are not read"):
        await full.simulate(pod_body(runtimeClassName="kata"))
    (pod,) = (await full.simulate(runtime, pod_body(runtimeClassName="kata")))["pods"]
    assert "didn't match Pod's node affinity/selector" in pod["attempts"][0]["message"]
