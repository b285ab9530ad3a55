import pytest
from tests.builders import make_selector, make_term
from tests.plugins.scenes import sign
from tests.plugins.volume_scenes import (
    HOSTNAME,
    VolumeScene,
    capacity,
    claim,
    csi_driver,
    csi_node,
    delayed_class,
    host,
    pod_with,
    ref,
    volume,
    writes_and_end,
)

from bayplan.api.response import ApiResponse
from bayplan.api.storage_objects import PersistentVolume
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.status import Code, EffectError
from bayplan.plugins.volumes.claims import VolumeError

ZONE = "topology.kubernetes.io/zone"
GCE_DISK = {"pdName": "d"}
UU = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
NO_MATCH = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
MISSING = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


def reserve(scene, pod, node="n1"):
    return scene.binding.reserve({}, PodInfo(pod), node)


def pre_bind(scene, pod):
    """The exchange that binds the pod's claims on n1."""
    assert reserve(scene, pod).ok
    return scene.binding.pre_bind({}, PodInfo(pod), "n1")


def test_a_pod_without_claims_is_not_looked_at():
    scene = VolumeScene(host())
    assert scene.refusal(scene.binding, pod_with())[0] is Code.SKIP
    assert reserve(scene, pod_with()).ok
    assert scene.binding.pre_bind({}, PodInfo(pod_with()), "n1") is None


def test_pods_with_and_without_claims_share_no_evaluation():
    binding = VolumeScene().binding
    assert sign(binding) != binding.sign_pod(PodInfo(pod_with("c"))) == binding.sign_pod(PodInfo(pod_with("d")))


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        ([], 'persistentvolumeclaim "c" not found'),
        ([claim(phase="Lost", volume="v")], 'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"'),
        ([claim(deleting=True)], 'persistentvolumeclaim "c" is being deleted'),
        ([claim(storage_class="")], "pod has unbound immediate PersistentVolumeClaims"),
        ([claim(storage_class=None)], "pod has unbound immediate PersistentVolumeClaims"),
        ([claim(), delayed_class(mode="Immediate")], "pod has unbound immediate PersistentVolumeClaims"),
        # A prebound claim is the volume controller's to bind.
        ([claim(volume="v"), delayed_class()], "pod has unbound immediate PersistentVolumeClaims"),
    ],
)
def test_a_claim_that_cannot_be_used_keeps_the_pod_from_every_node(objects, text):
    scene = VolumeScene(host(), *objects)
    assert scene.refusal(scene.binding, pod_with("c")) == (UU, text)


def test_an_ephemeral_claim_must_exist_and_be_the_pods_own():
    scene = VolumeScene(host(), delayed_class())
    pod = pod_with(ephemeral=("scratch",))
    waiting = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-scratch"'
    assert scene.refusal(scene.binding, pod) == (UU, waiting)
    scene.add(claim("p-scratch", owner="somebody"))
    foreign = "PVC default/p-scratch was not created for pod default/p (pod is not owner)"
    assert scene.refusal(scene.binding, pod) == (UU, foreign)
    scene.add(claim("p-scratch", owner="p"))
    assert scene.refusal(scene.binding, pod)[0] is Code.SUCCESS


def test_a_class_that_does_not_say_when_to_bind_is_an_error():
    scene = VolumeScene(host(), claim(), delayed_class(mode=None))
    with pytest.raises(VolumeError, match='VolumeBindingMode not set for StorageClass "local"'):
        scene.refusal(scene.binding, pod_with("c"))


def test_a_bound_claim_runs_only_where_its_volume_can_be_reached():
    scene = VolumeScene(host(), host("n2"), claim(volume="v", bound=True), volume("v", on="n2"))
    assert scene.rejections(scene.binding, pod_with("c")) == {"n1": (UU, [CONFLICT])}


def test_a_volume_sees_the_labels_of_a_node_and_not_its_name():
    scene = VolumeScene(host(), claim(volume="v", bound=True))
    scene.add(volume("v", terms=(make_term(fields=["metadata.name In n2"]),)))
    assert scene.texts(scene.binding, pod_with("c")) == {}
    scene.add(volume("v", terms=(make_term(f"{HOSTNAME} Exists", fields=["metadata.name NotIn n1"]),)))
    assert scene.texts(scene.binding, pod_with("c")) == {}
    scene.add(volume("v", terms=(make_term(f"{HOSTNAME} DoesNotExist", fields=["metadata.name In n1"]),)))
    assert scene.texts(scene.binding, pod_with("c")) == {"n1": [CONFLICT]}


def test_a_bound_claim_without_its_volume_runs_nowhere():
    scene = VolumeScene(host(), claim("a", volume="va", bound=True), claim("b", volume="vb", bound=True))
    scene.add(host("n2"), volume("va", on="n1"))
    # The first claim with trouble speaks.
    assert scene.texts(scene.binding, pod_with("a", "b")) == {"n1": [MISSING], "n2": [CONFLICT]}


def test_a_migrated_volume_is_reached_by_the_drivers_topology():
    terms = (make_term(f"{ZONE} In a"),)
    scene = VolumeScene(claim(volume="v", bound=True), volume("v", gce_persistent_disk=GCE_DISK, terms=terms))
    scene.add(host("old", **{ZONE: "a"}), host("new", **{"topology.gke.io/zone": "a"}))
    assert scene.texts(scene.binding, pod_with("c")) == {"new": [CONFLICT]}
    scene.add(csi_node("new", migrated="kubernetes.io/aws-ebs,kubernetes.io/gce-pd"))
    assert scene.texts(scene.binding, pod_with("c")) == {}


@pytest.mark.parametrize(
    ("zones", "text"),
    [
        ("z0__z1", "zone in unexpected format, expected: {locale}-{region}-{zone}, got: z0"),
        ("eu-1-a__us-1-a", "multiple or no regions gotten from zones, got: map[eu-1:{} us-1:{}]"),
    ],
)
def test_a_regional_disk_in_no_region_is_an_error_on_nodes_that_leave_it_to_the_driver(zones, text):
    disk = volume("v", gce_persistent_disk=GCE_DISK, labels={ZONE: zones})
    scene = VolumeScene(host(), claim(volume="v", bound=True), disk)
    assert scene.texts(scene.binding, pod_with("c")) == {}
    scene.add(csi_node("n1", migrated="kubernetes.io/gce-pd"))
    start = "could not translate pv: failed to get region from zones: "
    assert scene.rejections(scene.binding, pod_with("c")) == {"n1": (Code.ERROR, [start + text])}


def test_a_regional_disk_is_reached_in_all_its_zones():
    disk = volume("v", gce_persistent_disk=GCE_DISK, labels={ZONE: "eu-1-a__eu-1-b"})
    scene = VolumeScene(claim(volume="v", bound=True), disk)
    for name, zone in (("n1", "eu-1-a"), ("n2", "eu-1-b"), ("n3", "eu-1-c")):
        scene.add(host(name, **{"topology.gke.io/zone": zone}), csi_node(name, migrated="kubernetes.io/gce-pd"))
    assert scene.texts(scene.binding, pod_with("c")) == {"n3": [CONFLICT]}


def test_the_smallest_volume_that_fits_is_taken():
    scene = VolumeScene(host(), host("n2"), claim(size="5Gi"), delayed_class())
    scene.add(volume("huge", on="n1", size="50Gi"), volume("fit", on="n1", size="5Gi"), volume("tiny", size="4Gi"))
    assert scene.texts(scene.binding, pod_with("c")) == {"n2": [NO_MATCH]}
    assert scene.bound(pod_with("c")) == ["fit"]


@pytest.mark.parametrize(
    "unfit",
    [
        {"size": "1Mi"},
        {"phase": "Released"},
        {"storage_class": "other"},
        {"modes": ("ReadOnlyMany",)},
        {"volume_mode": "Block"},
        {"volume_attributes_class_name": "gold"},
        {"claim_ref": ref("other")},
        {"claim_ref": ref(uid="an older claim of that name")},
        {"on": "n2"},
        {"labels": {"tier": "slow"}},
        {"size": "not a quantity"},
    ],
)
def test_a_volume_that_differs_in_what_matters_is_not_taken(unfit):
    scene = VolumeScene(host(), claim(selector=make_selector(tier="fast")), delayed_class())
    scene.add(volume("v", **({"labels": {"tier": "fast"}} | unfit)))
    assert scene.texts(scene.binding, pod_with("c")) == {"n1": [NO_MATCH]}
    scene.add(volume("v", labels={"tier": "fast"}))
    assert scene.texts(scene.binding, pod_with("c")) == {}


def test_a_volume_meant_for_the_claim_wins_and_allows_no_other():
    scene = VolumeScene(host(), host("n2"), claim(), delayed_class())
    scene.add(volume("small", size="1Gi"), volume("mine", on="n1", size="90Gi", claim_ref=ref(uid="")))
    assert scene.texts(scene.binding, pod_with("c")) == {"n2": [NO_MATCH]}
    assert scene.bound(pod_with("c")) == ["mine"]


def test_two_claims_of_a_pod_get_two_volumes():
    scene = VolumeScene(host(), host("n2"), claim("big", size="8Gi"), claim("small"), delayed_class())
    scene.add(volume("v1", on="n1", size="8Gi"), volume("v2", on="n1", size="9Gi"), volume("v3", on="n2"))
    assert scene.texts(scene.binding, pod_with("big", "small")) == {"n2": [NO_MATCH]}
    # The smaller claim chooses first.
    assert scene.bound(pod_with("big", "small")) == ["v1", "v2"]


def test_an_assumed_volume_is_taken_by_nobody_else_until_it_is_given_back():
    scene = VolumeScene(host(), claim("a"), claim("b"), delayed_class(), volume("v"))
    first, second = pod_with("a", name="p1"), pod_with("b", name="p2")
    assert reserve(scene, first).ok
    assert scene.texts(scene.binding, second) == {"n1": [NO_MATCH]}
    assert reserve(scene, second).code is Code.ERROR
    assert scene.texts(scene.binding, first) == {}
    scene.binding.unreserve({}, PodInfo(first), "n1")
    assert scene.texts(scene.binding, second) == {}


def test_a_claim_that_waits_for_a_node_binds_later_pods_to_it():
    scene = VolumeScene(host(), host("n2"), claim(), delayed_class(provisioner="csi.example"))
    assert scene.texts(scene.binding, pod_with("c")) == {}
    assert reserve(scene, pod_with("c", name="p1"), "n2").ok
    assert scene.texts(scene.binding, pod_with("c", name="p2")) == {"n1": [NO_MATCH]}
    scene.binding.unreserve({}, PodInfo(pod_with("c", name="p1")), "n2")
    assert scene.texts(scene.binding, pod_with("c", name="p2")) == {}


def test_volumes_are_made_only_where_the_class_allows():
    scene = VolumeScene(host("n1", zone="a"), host("n2", zone="b"), claim())
    scene.add(delayed_class(provisioner="csi.example", zone="b"))
    assert scene.texts(scene.binding, pod_with("c")) == {"n1": [NO_MATCH]}


def test_a_driver_that_counts_its_space_must_have_enough_of_it():
    scene = VolumeScene(host("n1", zone="a"), host("n2", zone="b"), host("n3"), claim(size="10Gi"))
    scene.add(delayed_class(provisioner="csi.example"), csi_driver("csi.example"))
    scene.add(capacity("a", "local", "100Gi", make_selector(zone="a")))
    scene.add(capacity("b", "local", "100Gi", make_selector(zone="b"), largest="9Gi"))
    scene.add(capacity("everywhere", "other", "100Gi", make_selector()), capacity("nowhere", "local", "100Gi", None))
    assert scene.texts(scene.binding, pod_with("c")) == {"n2": [NO_SPACE], "n3": [NO_SPACE]}
    scene.add(csi_driver("csi.example", storage_capacity=None))
    assert scene.texts(scene.binding, pod_with("c")) == {}


def test_volumes_that_go_or_change_their_class_are_not_taken():
    scene = VolumeScene(host(), claim(), delayed_class(), volume("v"), volume("w"))
    pod = pod_with("c")
    assert scene.bound(pod) == ["v"]
    scene.delete(PersistentVolume, "v")
    assert scene.bound(pod) == ["w"]
    scene.add(volume("w", storage_class="other"))
    assert scene.texts(scene.binding, pod) == {"n1": [NO_MATCH]}
    # One that comes back is another, and stands behind those that stayed.
    scene.add(volume("w"), volume("v"))
    assert scene.bound(pod) == ["w"]


def test_prebinding_names_the_volume_the_claim_and_the_version_it_was_decided_on():
    scene = VolumeScene(host(), claim(version="7"), delayed_class(), volume("v", version="5"))
    exchange = pre_bind(scene, pod_with("c"))
    (write,), end = writes_and_end(exchange)
    assert (write.method, write.path) == ("PATCH", "/api/v1/persistentvolumes/v")
    assert (write.content_type, write.versioned) == ("application/merge-patch+json", False)
    by_controller = {"pv.kubernetes.io/bound-by-controller": "yes"}
    assert write.body == {
        "metadata": {"uid": "uid-v", "resourceVersion": "5", "annotations": by_controller},
        "spec": {
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": "default",
                "name": "c",
                "uid": "uid-c",
                "resourceVersion": "7",
            }
        },
    }
    assert exchange.waits
    assert end == "waits"
    scene.add(volume("v", version="6", claim_ref=ref()))
    assert writes_and_end(exchange)[1] == "waits"
    scene.add(claim(version="8", volume="v", bound=True))
    assert writes_and_end(exchange)[1] == "done"
    assert scene.texts(scene.binding, pod_with("c")) == {}


def test_provisioning_is_asked_for_by_the_node_and_ends_when_the_annotation_is_taken_away():
    scene = VolumeScene(host(), claim(version="7"), delayed_class(provisioner="csi.example"))
    exchange = pre_bind(scene, pod_with("c"))
    (write,), end = writes_and_end(exchange)
    assert write.path == "/api/v1/namespaces/default/persistentvolumeclaims/c"
    assert write.body["metadata"]["annotations"] == {"volume.kubernetes.io/selected-node": "n1"}
    assert end == "waits"
    scene.add(claim(version="8", selected="n1"))
    assert writes_and_end(exchange)[1] == "waits"
    scene.add(claim(version="9", selected="n1", volume="v", bound=True))
    assert writes_and_end(exchange)[1] == "waits", "the volume is not known yet"
    scene.add(volume("v", on="n2"))
    assert 'pv "v" node affinity doesn\'t match node "n1"' in writes_and_end(exchange)[1]
    scene.add(volume("v", on="n1"))
    assert writes_and_end(exchange)[1] == "done"
    scene.add(claim(version="10"))
    assert writes_and_end(exchange)[1] == 'binding volumes: provisioning failed for PVC "c"'


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (ApiResponse(409, b'{"reason":"Conflict","message":"changed"}'), "status 409: Conflict: changed"),
        (None, "no answer from the API server"),
    ],
)
def test_a_write_that_fails_ends_the_binding(answer, text):
    scene = VolumeScene(host(), claim("c"), claim("d"), delayed_class(), volume("v"), volume("w"))
    conversation = pre_bind(scene, pod_with("c", "d")).begin()
    next(conversation)
    with pytest.raises(EffectError, match=f"writing persistentvolume v: {text}"):
        conversation.send(answer)


def test_volumes_are_waited_for_until_the_bind_timeout():
    scene = VolumeScene(host(), claim(), delayed_class(), volume("v"))
    conversation = pre_bind(scene, pod_with("c")).begin()
    next(conversation)
    pauses = [conversation.send(ApiResponse(200, b"{}"))]
    with pytest.raises(EffectError, match="binding volumes: context deadline exceeded"):
        pauses.extend(iter(lambda: conversation.send(None), None))
    assert sum(pauses) == pytest.approx(600)


def test_a_volume_that_changes_under_the_decision_fails_it():
    scene = VolumeScene(host(), claim(), delayed_class(), volume("v"))
    exchange = pre_bind(scene, pod_with("c"))
    scene.add(volume("v", version="2"))
    assert writes_and_end(exchange)[1] == 'binding volumes: ClaimRef got reset for pv "v"'
