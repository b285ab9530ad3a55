"""How full storage would be, as a score."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_selector
from tests.plugins.volume_scenes import VolumeScene, capacity, claim, csi_driver, delayed_class, host, pod_with, volume
from tests.reference.storage_scores import storage_score

from bayplan.api.storage_objects import CSIStorageCapacity
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import UtilizationShapePoint, VolumeBindingArgs
from bayplan.framework.status import SCORES_ZERO, SKIP, SUCCESS
from bayplan.plugins.volume_binding.volume_binding import VolumeBinding

CSI = "csi.example"
EMPTY = "kubernetes.io/no-provisioner"


def filtered_scores(scene, pod, plugin=None):
    """The scores of all nodes, by a plugin that has filtered them."""
    plugin = plugin or scene.binding
    state = {}
    scene.rejections(plugin, pod, state=state)
    return scene.scores(plugin, pod, state=state)


def test_pods_without_claims_score_0_without_being_scored():
    scene = VolumeScene(host())
    table = scene.cache.nodes
    assert scene.binding.pre_score({}, PodInfo(pod_with()), table, table.rows()) is SCORES_ZERO


def test_pods_whose_claims_are_bound_are_scored_only_beside_others_that_are():
    scene = VolumeScene(host(), claim("a", volume="v", bound=True), volume("v"), claim("b"), delayed_class())
    table, state = scene.cache.nodes, {}

    def pre_score(name):
        pod = PodInfo(pod_with(name))
        scene.rejections(scene.binding, pod.pod, state=state)
        return scene.binding.pre_score(state, pod, table, table.rows())

    assert pre_score("a") is SCORES_ZERO
    assert pre_score("b") is SUCCESS
    assert pre_score("a") is SUCCESS
    assert scene.scores(scene.binding, pod_with("a"), state=state) == {"n1": 0}


def test_volumes_at_hand_score_by_how_much_of_them_stays_free():
    scene = VolumeScene(host(), host("n2"), host("n3"), claim(size="1Gi"), delayed_class())
    scene.add(volume("v1", on="n1", size="10Gi"), volume("v2", on="n2", size="4Gi"))
    assert filtered_scores(scene, pod_with("c")) == {"n1": 90, "n2": 75, "n3": 0}


def test_volumes_of_one_class_are_added_up_and_classes_weigh_the_same():
    scene = VolumeScene(host(), delayed_class(), delayed_class("other"))
    scene.add(claim("a", size="1Gi"), claim("b", size="2Gi"), claim("c", size="5Gi", storage_class="other"))
    scene.add(volume("v1", size="2Gi"), volume("v2", size="6Gi"), volume("v3", size="5Gi", storage_class="other"))
    assert filtered_scores(scene, pod_with("a", "b")) == {"n1": 100 - 100 * 3 // 8}
    # (63 + 0) / 2 rounds up.
    assert filtered_scores(scene, pod_with("a", "b", "c")) == {"n1": 32}


def test_new_volumes_score_by_the_space_that_their_driver_publishes():
    scene = VolumeScene(host("n1", zone="a"), host("n2", zone="b"), host("n3", zone="c"))
    scene.add(delayed_class(provisioner=CSI), csi_driver(CSI), claim("c", size="10Gi"), claim("d", size="40Gi"))
    scene.add(capacity("a", "local", "100Gi", make_selector(zone="a")))
    scene.add(capacity("b", "local", "50Gi", make_selector(zone="b")))
    assert filtered_scores(scene, pod_with("c"))["n1"] == 90
    assert filtered_scores(scene, pod_with("c"))["n2"] == 80
    # Claims share the space.
    assert filtered_scores(scene, pod_with("c", "d"))["n1"] == 50
    assert filtered_scores(scene, pod_with("c", "d"))["n2"] == 0
    scene.add(csi_driver(CSI, storage_capacity=None))
    assert set(filtered_scores(scene, pod_with("c")).values()) == {0}


def test_where_a_claim_gets_a_volume_at_hand_new_volumes_do_not_count():
    scene = VolumeScene(host(), delayed_class(), delayed_class("made", CSI), csi_driver(CSI))
    scene.add(claim("a", size="1Gi"), claim("b", size="1Gi", storage_class="made"), volume("v", size="2Gi"))
    scene.add(capacity("k", "made", "100Gi", make_selector()))
    assert filtered_scores(scene, pod_with("a", "b")) == {"n1": 50}
    assert filtered_scores(scene, pod_with("b")) == {"n1": 99}


@pytest.mark.parametrize("selector", [make_selector(zone="a"), make_selector(zone="a", kubernetes_io="x"), None])
def test_of_several_capacities_the_one_for_the_largest_volume_counts(selector):
    scene = VolumeScene(host("n1", zone="a", kubernetes_io="x"), claim(size="10Gi"))
    scene.add(delayed_class(provisioner=CSI), csi_driver(CSI))
    scene.add(capacity("a", "local", "20Gi", make_selector(zone="a")), capacity("b", "local", "100Gi", selector))
    assert filtered_scores(scene, pod_with("c")) == {"n1": 50 if selector is None else 90}
    scene.add(capacity("b", "local", "100Gi", selector, largest="15Gi"))
    assert filtered_scores(scene, pod_with("c")) == {"n1": 50}
    scene.add(capacity("b", "local", "100Gi", selector, largest="20Gi"))
    assert filtered_scores(scene, pod_with("c")) == {"n1": 50 if selector is None else 90}


def test_a_capacity_that_says_only_how_large_a_volume_can_be_counts_as_full():
    scene = VolumeScene(host(), claim(size="10Gi"), delayed_class(provisioner=CSI), csi_driver(CSI))
    scene.add(capacity("a", "local", None, make_selector(), largest="20Gi"))
    assert filtered_scores(scene, pod_with("c")) == {"n1": 0}


def test_the_shape_is_that_of_the_arguments():
    scene = VolumeScene(host(), claim(size="1Gi"), delayed_class(), volume("v", size="4Gi"))
    shape = (UtilizationShapePoint(0, 0), UtilizationShapePoint(50, 10))
    plugin = VolumeBinding(VolumeBindingArgs(shape=shape), scene.cache.nodes, scene.index, scene.listers)
    assert filtered_scores(scene, pod_with("c"), plugin) == {"n1": 50}


def test_without_the_gate_nothing_is_scored():
    scene = VolumeScene(host(), claim(size="1Gi"), delayed_class(), volume("v", size="4Gi"))
    table = scene.cache.nodes
    plugin = VolumeBinding(VolumeBindingArgs(), table, scene.index, scene.listers, scores=False)
    assert plugin.pre_score({}, PodInfo(pod_with("c")), table, table.rows()) is SKIP
    assert filtered_scores(scene, pod_with("c"), plugin) == {"n1": 0}


def test_rows_that_were_not_filtered_together_score_the_same():
    scene = VolumeScene(host(), host("n2"), claim(size="1Gi"), delayed_class())
    scene.add(volume("v1", on="n1", size="10Gi"), volume("v2", on="n2", size="4Gi"))
    table, info, state = scene.cache.nodes, PodInfo(pod_with("c")), {}
    assert scene.binding.pre_filter(state, info, table).status is SUCCESS
    scene.binding.filter(state, info, table, table.rows())
    assert scene.binding.pre_score(state, info, table, table.rows()) is SUCCESS
    assert scene.binding.score(state, info, table, table.rows()[1:]).tolist() == [75]


SIZES = st.sampled_from(["1", "1Gi", "3Gi", "1500M", "10Gi"])
SHAPES = st.lists(st.integers(0, 100), min_size=1, max_size=3, unique=True).flatmap(
    lambda at: st.tuples(*(st.tuples(st.just(each), st.integers(0, 10)) for each in sorted(at)))
)


@st.composite
def claims_and_space(draw):
    """Claims of two classes, volumes for some, and a capacity or none for each class."""
    names = ("local", "other")
    claims = [
        claim(f"c{number}", size=size, storage_class=draw(st.sampled_from(names)))
        for number, size in enumerate(draw(st.lists(SIZES, min_size=1, max_size=4)))
    ]
    volumes = [
        volume(f"v{number}", size=size, storage_class=draw(st.sampled_from(names)))
        for number, size in enumerate(draw(st.lists(SIZES, max_size=4)))
    ]
    capacities = [capacity(name, name, draw(SIZES), make_selector()) for name in draw(st.sets(st.sampled_from(names)))]
    return claims, volumes, capacities, draw(SHAPES)


@settings(deadline=None)
@given(claims_and_space())
def test_scores_agree_with_a_slow_reading_of_the_rules(drawn):
    claims, volumes, capacities, shape = drawn
    scene = VolumeScene(host(), delayed_class("local", CSI), delayed_class("other", CSI), csi_driver(CSI))
    scene.add(*claims, *volumes, *capacities)
    points = tuple(UtilizationShapePoint(*point) for point in shape)
    plugin = VolumeBinding(VolumeBindingArgs(shape=points), scene.cache.nodes, scene.index, scene.listers)
    pod = pod_with(*(each.metadata.name for each in claims))
    state = {}
    if scene.rejections(plugin, pod, state=state):
        return
    written = set(scene.bound(pod))
    by_volume = {each.metadata.name: each for each in volumes}
    # Who gets which volume is what test_matching.py is about; sums of a class do not depend on it.
    matched = _pairs(claims, [by_volume[name] for name in sorted(written & by_volume.keys())], written)
    space: dict[str, CSIStorageCapacity] = {each.storage_class_name: each for each in capacities}
    provisioned = [(each, space.get(each.spec.storage_class_name)) for each in claims]
    scaled = [(utilization, 10 * score) for utilization, score in shape]
    assert scene.scores(plugin, pod, state=state) == {"n1": storage_score(matched, provisioned, scaled)}


def _pairs(claims, taken, written):
    """Each volume that is taken with a claim of its class that gets one."""
    left = [each for each in claims if each.metadata.name not in written]
    pairs = []
    for each in taken:
        mine = next(one for one in left if one.spec.storage_class_name == each.spec.storage_class_name)
        left.remove(mine)
        pairs.append((mine, each))
    return pairs
