import pytest
from tests.plugins.scenes import hint, sign
from tests.plugins.volume_scenes import VolumeScene, claim, delayed_class, host, pod_with, volume

from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import ActionType, EventResource, cluster_event
from bayplan.framework.status import Code

UU = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
CONFLICT = "node(s) had no available volume zone"
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"


def scene(*nodes, labels):
    return VolumeScene(*nodes, claim(volume="v", bound=True), volume("v", labels=labels))


def test_a_pod_without_claims_or_zoned_volumes_is_not_looked_at():
    made = scene(labels={"zone": "a"})
    assert sign(made.zone) != made.zone.sign_pod(PodInfo(pod_with("c")))
    assert made.refusal(made.zone, pod_with())[0] is Code.SKIP
    assert made.refusal(made.zone, pod_with("c"))[0] is Code.SKIP


def test_a_pod_runs_in_the_zones_and_regions_of_its_volumes():
    nodes = [host("n1", **{ZONE: "a", REGION: "r"}), host("n2", **{ZONE: "b", REGION: "r"}), host("n3", **{ZONE: "c"})]
    made = scene(*nodes, labels={ZONE: "a__ c", REGION: "r"})
    rejected = made.rejections(made.zone, pod_with("c"))
    assert rejected == {"n2": (UU, [CONFLICT]), "n3": (UU, [CONFLICT])}


def test_a_node_without_any_zone_label_passes():
    made = scene(host("n1"), host("n2", **{REGION: "r"}), labels={ZONE: "a"})
    assert made.texts(made.zone, pod_with("c")) == {"n2": [CONFLICT]}


def test_a_beta_label_is_met_by_the_newer_one_only_where_the_node_has_no_beta_label():
    nodes = [host("n1", **{ZONE: "a"}), host("n2", **{ZONE: "a", BETA_ZONE: "b"}), host("n3", **{BETA_ZONE: "a"})]
    made = scene(*nodes, labels={BETA_ZONE: "a"})
    assert made.texts(made.zone, pod_with("c")) == {"n2": [CONFLICT]}
    newer = scene(*nodes, labels={ZONE: "a"})
    assert newer.texts(newer.zone, pod_with("c")) == {"n3": [CONFLICT]}


def test_a_label_with_an_empty_zone_is_void():
    made = scene(host("n1", **{ZONE: "b"}), labels={ZONE: "a__"})
    assert made.refusal(made.zone, pod_with("c"))[0] is Code.SKIP


@pytest.mark.parametrize(
    ("claimed", "objects", "text"),
    [
        ("", [], "PersistentVolumeClaim had no name"),
        ("c", [], 'persistentvolumeclaim "c" not found'),
        ("c", [claim(storage_class=None)], "PersistentVolumeClaim had no pv name and storageClass name"),
        ("c", [claim()], 'storageclass.storage.k8s.io "local" not found'),
        ("c", [claim(), delayed_class(mode=None)], 'VolumeBindingMode not set for StorageClass "local"'),
        ("c", [claim(), delayed_class(mode="Immediate")], "PersistentVolume had no name"),
        ("c", [claim(volume="v", bound=True)], 'persistentvolume "v" not found'),
    ],
)
def test_a_claim_without_a_known_volume_keeps_the_pod_back(claimed, objects, text):
    made = VolumeScene(host("n1", **{ZONE: "a"}), *objects)
    assert made.refusal(made.zone, pod_with(claimed)) == (UU, text)
    assert made.rejections(made.zone, pod_with(claimed), with_pre_filter=False)["n1"][0] is UU


def test_a_claim_that_waits_for_the_pod_has_no_zone_yet():
    made = VolumeScene(host("n1", **{ZONE: "a"}), claim(), delayed_class())
    assert made.refusal(made.zone, pod_with("c"))[0] is Code.SKIP


def test_only_changes_that_may_help_wake_the_pod():
    plugin, pod = VolumeScene().zone, pod_with("c", ephemeral=("e",))
    classes = cluster_event(EventResource.STORAGE_CLASS, ActionType.ADD)
    assert hint(plugin, classes, pod, None, delayed_class()) == "Queue"
    assert hint(plugin, classes, pod, None, delayed_class(mode="Immediate")) == "QueueSkip"
    volumes = cluster_event(EventResource.PERSISTENT_VOLUME, ActionType.UPDATE)
    assert hint(plugin, volumes, pod, volume("v"), volume("v", labels={ZONE: "a"})) == "Queue"
    assert hint(plugin, volumes, pod, volume("v"), volume("v", phase="Bound")) == "QueueSkip"
    claims = cluster_event(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.UPDATE)
    assert hint(plugin, claims, pod, claim(), claim()) == "Queue"
    assert hint(plugin, claims, pod, claim("p-e"), claim("p-e")) == "QueueSkip"
