import pytest
from tests.plugins.scenes import hint, sign
from tests.plugins.volume_scenes import VolumeScene, claim, host, pod_with

from bayplan.api.objects import Volume
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.scratch_table import ScratchTable
from bayplan.evaluation.nominated_round import SingleNodeFilters
from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE, ActionType, EventResource, cluster_event
from bayplan.framework.status import Code

DISK = "node(s) had no available disk"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


def gce(name="d", **rest):
    return Volume(gce_persistent_disk={"pdName": name, **rest})


def aws(name="d", **rest):
    return Volume(aws_elastic_block_store={"volumeID": name, **rest})


def iscsi(name="d", **rest):
    return Volume(iscsi={"iqn": name, **rest})


def rbd(image="d", monitors=("m1", "m2"), pool="p", **rest):
    return Volume(rbd={"image": image, "monitors": list(monitors), "pool": pool, **rest})


NODES = host("n1"), host("n2")


@pytest.mark.parametrize(
    ("wanted", "held", "conflict"),
    [
        (gce(), gce(), True),
        (gce(), gce("other"), False),
        (gce(readOnly=True), gce(readOnly=True), False),
        (gce(readOnly=True), gce(), True),
        (aws(readOnly=True), aws(readOnly=True), True),
        (aws(), aws("other"), False),
        (iscsi(), iscsi(), True),
        (iscsi(readOnly=True), iscsi(readOnly=True), False),
        (rbd(), rbd(monitors=("m2", "m3")), True),
        (rbd(), rbd(monitors=("m3",)), False),
        (rbd(), rbd(pool="q"), False),
        (rbd(readOnly=True), rbd(readOnly=True), False),
        (Volume(rbd={"monitors": "m1"}), Volume(rbd={"monitors": [[], {}]}), False),
        (gce(), aws(), False),
    ],
)
def test_disks_conflict_on_a_node_unless_they_can_be_shared(wanted, held, conflict):
    scene = VolumeScene(*NODES, pod_with(name="q", node="n1", volumes=[held]))
    found = scene.rejections(scene.restrictions, pod_with(volumes=[wanted]))
    assert found == ({"n1": (Code.UNSCHEDULABLE, [DISK])} if conflict else {})


@pytest.mark.parametrize("reads", [(True, False), (False, True)])
def test_a_disk_that_one_of_several_pods_writes_to_is_not_shared(reads):
    users = (pod_with(name=f"q{i}", node="n1", volumes=[gce(readOnly=each)]) for i, each in enumerate(reads))
    scene = VolumeScene(*NODES, *users)
    assert scene.texts(scene.restrictions, pod_with(volumes=[gce(readOnly=True)])) == {"n1": [DISK]}


def test_pods_with_equal_disks_are_alike_and_pods_with_claims_are_like_no_other():
    plugin = VolumeScene().restrictions
    shapes = {sign(plugin), sign(plugin, volumes=[gce()]), plugin.sign_pod(PodInfo(pod_with("c")))}
    assert len(shapes) == 3


def test_a_claim_for_one_pod_is_refused_everywhere_while_another_pod_uses_it():
    scene = VolumeScene(*NODES, claim(modes=("ReadWriteOncePod",)))
    assert scene.refusal(scene.restrictions, pod_with("c"))[0] is Code.SKIP
    user = pod_with("c", name="q", node="n1")
    scene.add(user)
    blocked = (Code.UNSCHEDULABLE, [IN_USE])
    assert scene.rejections(scene.restrictions, pod_with("c")) == {"n1": blocked, "n2": blocked}
    scene.cache.remove_pod("q")
    assert scene.refusal(scene.restrictions, pod_with("c"))[0] is Code.SKIP


@pytest.mark.parametrize(("volumes", "code"), [([gce()], Code.UNSCHEDULABLE), ([], Code.SUCCESS)])
def test_a_claim_for_one_pod_counts_for_pods_added_to_a_node_unless_pre_filter_left_the_filter_out(volumes, code):
    scene = VolumeScene(*NODES, claim(modes=("ReadWriteOncePod",)))
    table = ScratchTable(scene.cache.nodes)
    table.follow()
    nominated, wanting = PodInfo(pod_with("c", name="nominated")), PodInfo(pod_with("c", volumes=volumes))
    filters = SingleNodeFilters(wanting, [scene.restrictions], [scene.restrictions], table)
    n1, n2 = (table.row(name) for name in ("n1", "n2"))
    table.place([nominated], n1)
    assert filters.codes(n1) == [code]
    table.restore(table.rows())
    assert filters.codes(n2) == [Code.SUCCESS]


def test_a_claim_for_one_pod_that_two_use_is_free_when_preemption_leaves_one_of_them_out():
    users = [pod_with("c", name=name, node="n1") for name in ("q", "r")]
    scene = VolumeScene(*NODES, claim(modes=("ReadWriteOncePod",)), *users)
    table = ScratchTable(scene.cache.nodes)
    table.follow()
    filters = SingleNodeFilters(PodInfo(pod_with("c")), [scene.restrictions], [scene.restrictions], table)
    n1 = table.row("n1")
    assert filters.codes(n1) == [Code.UNSCHEDULABLE]
    table.remove_pod(PodInfo(users[0]), n1)
    assert filters.codes(n1) == [Code.SUCCESS]


def test_a_claim_that_may_be_shared_or_that_is_anothers_does_not_stop_the_pod():
    scene = VolumeScene(*NODES, claim(), pod_with("c", name="q", node="n1"))
    assert scene.refusal(scene.restrictions, pod_with("c"))[0] is Code.SKIP
    elsewhere = pod_with("d", name="r", node="n1", namespace="other")
    scene.add(claim("d", modes=("ReadWriteOncePod",)), elsewhere)
    assert scene.refusal(scene.restrictions, pod_with("d"))[0] is Code.SKIP


def test_a_missing_claim_keeps_the_pod_from_every_node():
    scene = VolumeScene(*NODES)
    expected = (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, 'persistentvolumeclaim "c" not found')
    assert scene.refusal(scene.restrictions, pod_with("c")) == expected


def test_a_pod_that_goes_wakes_those_that_need_its_disk_or_claim():
    plugin, pod = VolumeScene().restrictions, pod_with("c", volumes=[gce()])
    assert hint(plugin, ASSIGNED_POD_DELETE, pod, pod_with("c", name="q", node="n")) == "Queue"
    assert hint(plugin, ASSIGNED_POD_DELETE, pod, pod_with(name="q", node="n", volumes=[gce()])) == "Queue"
    assert hint(plugin, ASSIGNED_POD_DELETE, pod, pod_with("x", name="q", node="n")) == "QueueSkip"
    assert hint(plugin, ASSIGNED_POD_DELETE, pod, pod_with("c", name="q", namespace="other")) == "QueueSkip"


def test_a_new_claim_wakes_the_pod_that_names_it():
    plugin = VolumeScene().restrictions
    added = cluster_event(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)
    assert hint(plugin, added, pod_with("c"), None, claim()) == "Queue"
    assert hint(plugin, added, pod_with("x"), None, claim()) == "QueueSkip"
