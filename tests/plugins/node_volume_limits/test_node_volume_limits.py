import pytest
from tests.plugins.scenes import hint, sign
from tests.plugins.volume_scenes import (
    VolumeScene,
    attachment,
    claim,
    csi_driver,
    csi_node,
    delayed_class,
    host,
    pod_with,
    volume,
)

from bayplan.api.objects import Volume
from bayplan.api.storage_objects import VolumeAttachment
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE, ActionType, EventResource, cluster_event
from bayplan.framework.status import Code
from bayplan.plugins.node_volume_limits.node_volume_limits import NodeVolumeLimits

EXCEEDED = "node(s) exceed max volume count"
FULL = {"n1": [EXCEEDED]}


def aws(volume_id):
    return Volume(aws_elastic_block_store={"volumeID": volume_id})


def bound(name, handle=None):
    """A claim and its volume of the driver csi.example."""
    handle = handle or name
    return claim(name, volume=f"v-{handle}", bound=True), volume(f"v-{handle}", csi=("csi.example", handle))


def scene(limit, *objects):
    return VolumeScene(host("n1"), host("n2"), csi_node("n1", csi_example=limit), *objects)


def errors(made, pod):
    """What ends the cycle on nodes that no filter before this one rejects."""
    rejections = made.rejections(made.limits, pod)
    assert all(code is Code.ERROR for code, _ in rejections.values())
    return {name: text for name, (_, [text]) in rejections.items()}


def test_a_pod_without_volumes_to_count_is_not_looked_at():
    made = scene(1)
    assert made.refusal(made.limits, pod_with())[0] is Code.SKIP
    assert sign(made.limits) != made.limits.sign_pod(PodInfo(pod_with("c")))


def test_a_node_takes_as_many_volumes_as_its_driver_can_attach():
    made = scene(1, *bound("a"), *bound("b"), pod_with("a", name="q", node="n1"))
    assert made.rejections(made.limits, pod_with("b")) == {"n1": (Code.UNSCHEDULABLE, [EXCEEDED])}
    made.add(csi_node("n1", csi_example=2))
    assert made.rejections(made.limits, pod_with("b")) == {}
    made.add(csi_node("n1", csi_example=None))
    assert made.rejections(made.limits, pod_with("b")) == {}
    made.add(csi_node("n1", csi_other=0))
    assert made.rejections(made.limits, pod_with("b")) == {}


def test_a_volume_already_on_the_node_counts_once():
    made = scene(1, *bound("a"), *bound("b", handle="a"), pod_with("a", name="q", node="n1"))
    assert made.rejections(made.limits, pod_with("a")) == {}
    assert made.rejections(made.limits, pod_with("b")) == {}


def test_an_attachment_counts_though_no_pod_uses_it_any_more():
    made = scene(2, *bound("a"), *bound("b"), *bound("c"), attachment("x", "n1", "v-b"), attachment("y", "n2", "v-c"))
    made.add(pod_with("a", name="q", node="n1"), attachment("z", "n1", "v-a"))
    assert made.texts(made.limits, pod_with("c")) == FULL
    made.delete(VolumeAttachment, "x")
    assert made.texts(made.limits, pod_with("c")) == {}


def test_claims_without_a_volume_count_for_their_classes_driver():
    made = scene(1, claim("a"), claim("b"), delayed_class(provisioner="csi.example"))
    assert made.texts(made.limits, pod_with("a", "b")) == FULL
    assert made.texts(made.limits, pod_with("a")) == {}
    made.add(pod_with("b", name="q", node="n1"))
    assert made.texts(made.limits, pod_with("a")) == FULL


def test_in_tree_disks_count_for_the_driver_they_moved_to():
    disk = volume("v", aws_elastic_block_store={"volumeID": "aws://zone/vol-1"})
    made = scene(0, claim(volume="v", bound=True), disk, csi_node("n1", ebs_csi_aws_com=0))
    inline = pod_with(volumes=[aws("vol-2")])
    assert made.texts(made.limits, pod_with("c")) == FULL
    assert made.texts(made.limits, inline) == FULL
    made.add(csi_node("n1", ebs_csi_aws_com=1), pod_with("c", name="q", node="n1"))
    assert made.texts(made.limits, inline) == FULL
    same = pod_with(volumes=[aws("vol-1")])
    assert made.texts(made.limits, same) == {}
    assert errors(made, pod_with(volumes=[aws("aws://x/y")])) != {}


def test_a_missing_claim_keeps_the_pod_away_and_a_claim_of_a_running_pod_that_is_gone_counts_nothing():
    made = scene(1, *bound("b"), pod_with("gone", name="q", node="n1"))
    assert made.texts(made.limits, pod_with("b")) == {}
    text = 'looking up PVC default/c: persistentvolumeclaim "c" not found'
    rejected = (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [text])
    assert made.rejections(made.limits, pod_with("c")) == {"n1": rejected, "n2": rejected}


def test_of_a_disk_and_a_claim_with_a_problem_the_first_volume_is_told_of():
    made = VolumeScene(host("n1"), host("n2"), csi_node("n1", ebs_csi_aws_com=9))
    missing = (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ['looking up PVC default/c: persistentvolumeclaim "c" not found'])
    invalid = "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://x/y)"
    untranslatable = (Code.ERROR, [f"converting volume(d) from inline to csi: {invalid}"])
    disk, named = Volume(name="d", aws_elastic_block_store={"volumeID": "aws://x/y"}), pod_with("c").spec.volumes[0]
    assert made.rejections(made.limits, pod_with(volumes=[named, disk])) == {"n1": missing, "n2": missing}
    # Nodes without a CSINode do not ask for the name that the driver knows.
    assert made.rejections(made.limits, pod_with(volumes=[disk, named])) == {"n1": untranslatable, "n2": missing}
    nameless = pod_with("").spec.volumes[0]
    assert made.rejections(made.limits, pod_with(volumes=[disk, nameless])) == {
        "n1": untranslatable,
        "n2": (Code.ERROR, ["PersistentVolumeClaim had no name"]),
    }


def test_a_foreign_ephemeral_claim_stops_its_own_pod_only():
    made = scene(1, *bound("b"), claim("q-e", owner="x"), pod_with(name="q", node="n1", ephemeral=("e",)))
    assert made.texts(made.limits, pod_with("b")) == {}
    text = "PVC default/q-e was not created for pod default/q (pod is not owner)"
    assert errors(made, pod_with(name="q", ephemeral=("e",))) == {"n1": text, "n2": text}


def test_only_changes_that_may_help_wake_the_pod():
    plugin, pod = VolumeScene().limits, pod_with("c")
    updated = cluster_event(EventResource.CSI_NODE, ActionType.UPDATE)
    assert hint(plugin, updated, pod, csi_node("n", d=1), csi_node("n", d=2)) == "Queue"
    assert hint(plugin, updated, pod, csi_node("n", d=2), csi_node("n", d=1, e=0)) == "QueueSkip"
    assert hint(plugin, ASSIGNED_POD_DELETE, pod, pod_with("x", name="q", node="n")) == "Queue"
    assert hint(plugin, ASSIGNED_POD_DELETE, pod, pod_with(name="q", node="n")) == "QueueSkip"
    added = cluster_event(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)
    assert hint(plugin, added, pod, None, claim("x")) == "QueueSkip"
    detached = cluster_event(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE)
    assert hint(plugin, detached, pod, attachment("a", "n", "v")) == "Queue"
    inline = pod_with(volumes=[aws("vol-2")])
    assert hint(plugin, detached, inline, attachment("a", "n", "v")) == "QueueSkip"
    assert hint(plugin, detached, inline, attachment("a", "n", "v", "ebs.csi.aws.com")) == "Queue"


@pytest.mark.parametrize(
    ("inline", "driver"),
    [
        ({"azure_disk": {"diskURI": "d", "kind": "Managed"}}, "disk.csi.azure.com"),
        ({"cinder": {"volumeID": "d"}}, "cinder.csi.openstack.org"),
        ({"portworx_volume": {"volumeID": "d"}}, "pxd.portworx.com"),
        ({"gce_persistent_disk": {"pdName": "d"}}, "pd.csi.storage.gke.io"),
    ],
)
def test_disks_written_into_pods_count_for_the_driver_they_moved_to(inline, driver):
    pod = pod_with(volumes=[Volume(**inline)])
    made = scene(0, csi_node("n1", **{driver.replace(".", "_"): 0}))
    assert made.texts(made.limits, pod) == FULL
    made.add(csi_node("n1", **{driver.replace(".", "_"): 1}), pod_with(name="q", node="n1", volumes=[Volume(**inline)]))
    assert made.texts(made.limits, pod) == {}
    detached = cluster_event(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE)
    assert hint(made.limits, detached, pod, attachment("a", "n", "v", driver)) == "Queue"
    assert hint(made.limits, detached, pod, attachment("a", "n", "v")) == "QueueSkip"


def test_an_azure_disk_that_is_not_managed_has_no_driver():
    blob = Volume(name="data", azure_disk={"diskURI": "d", "kind": "Dedicated"})
    made = scene(0)
    text = "converting volume(data) from inline to csi: kind(Dedicated) is not supported in csi migration"
    # n2 has no CSINode, and so no driver that could be asked.
    assert errors(made, pod_with(volumes=[blob])) == {"n1": text}
    disk = volume("v", azure_disk={"diskURI": "d", "kind": "Dedicated"})
    made.add(claim(volume="v", bound=True), disk, csi_node("n1", disk_csi_azure_com=0))
    assert made.texts(made.limits, pod_with("c")) == {}


def test_plugins_that_no_limit_knows_keep_a_pod_nowhere():
    made = scene(0, csi_node("n1", file_csi_azure_com=0, csi_vsphere_vmware_com=0))
    pod = pod_with(volumes=[Volume(azure_file={"shareName": "s"}), Volume(vsphere_volume={"volumePath": "p"})])
    assert made.texts(made.limits, pod) == {}


def test_an_attached_volume_that_a_pod_comes_to_use_counts_once():
    made = scene(2, *bound("a"), *bound("b"), *bound("c"), attachment("x", "n1", "v-a"))
    assert made.texts(made.limits, pod_with("c")) == {}
    made.add(pod_with("a", name="q", node="n1"))
    assert made.texts(made.limits, pod_with("c")) == {}
    made.add(pod_with("b", name="r", node="n1"))
    assert made.texts(made.limits, pod_with("c")) == FULL


MISSING = "csi.example CSI driver is not installed on the node"
UNSCHEDULABLE = Code.UNSCHEDULABLE


def test_a_driver_may_keep_pods_from_nodes_where_it_is_missing():
    made = scene(1, *bound("a"), csi_node("n3", csi_other=1), host("n3"))
    assert made.rejections(made.limits, pod_with("a")) == {}
    made.add(csi_driver("csi.example", prevents=True))
    missing = (UNSCHEDULABLE, [MISSING])
    assert made.rejections(made.limits, pod_with("a")) == {"n2": missing, "n3": missing}
    assert made.rejections(made.limits, pod_with(ephemeral=())) == {}
    made.add(csi_node("n2", csi_example=None))
    assert made.texts(made.limits, pod_with("a")) == {"n3": [MISSING]}
    made.add(csi_driver("csi.example", prevents=False))
    assert made.rejections(made.limits, pod_with("a")) == {}


def test_a_claim_that_waits_for_a_volume_needs_the_driver_of_its_class():
    made = scene(1, claim(storage_class="fast"), delayed_class("fast", "csi.example"))
    made.add(csi_driver("csi.example", prevents=True))
    assert made.texts(made.limits, pod_with("c")) == {"n2": [MISSING]}


def test_a_missing_driver_is_named_before_a_limit_and_only_one_of_several():
    made = VolumeScene(host("n1"), csi_node("n1", b_example=0))
    for name in "abc":
        made.add(claim(name, volume=f"v-{name}", bound=True), volume(f"v-{name}", csi=(f"{name}.example", name)))
        made.add(csi_driver(f"{name}.example", prevents=name != "b"))
    assert made.texts(made.limits, pod_with("c", "b", "a")) == {
        "n1": ["a.example CSI driver is not installed on the node"]
    }
    made.add(csi_node("n1", b_example=0, a_example=None, c_example=None))
    assert made.texts(made.limits, pod_with("c", "b", "a")) == FULL


@pytest.mark.parametrize("how", ["of the pod", "bound", "to be made"])
def test_in_tree_volumes_need_their_driver_only_where_a_kubelet_told_of_drivers(how):
    made = VolumeScene(host("n1"), host("n2"), csi_node("n2"), csi_driver("ebs.csi.aws.com", prevents=True))
    pod = pod_with("c")
    if how == "of the pod":
        pod = pod_with(volumes=[aws("vol-1")])
    elif how == "bound":
        made.add(claim(volume="v", bound=True), volume("v", aws_elastic_block_store={"volumeID": "vol-1"}))
    else:
        made.add(claim(), delayed_class(provisioner="kubernetes.io/aws-ebs"))
    assert made.texts(made.limits, pod) == {"n2": ["ebs.csi.aws.com CSI driver is not installed on the node"]}


def test_without_the_gate_drivers_may_be_missing():
    made = scene(1, *bound("a"), csi_driver("csi.example", prevents=True))
    plugin = NodeVolumeLimits(made.cache.nodes, made.listers, scaling=False)
    assert made.rejections(plugin, pod_with("a")) == {}
