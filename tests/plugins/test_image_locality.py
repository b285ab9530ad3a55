import pytest
from tests.builders import make_container, make_node, make_pod
from tests.plugins.scenes import Scene, sign

from bayplan.api.objects import ImageVolumeSource, Volume
from bayplan.plugins.image_locality import ImageLocality, normalized_image_name

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("app", "app:latest"),
        ("app:1", "app:1"),
        ("reg:5000/app", "reg:5000/app:latest"),
        ("reg:5000/app:1", "reg:5000/app:1"),
        ("app@sha256:abc", "app@sha256:abc"),
        ("", ":latest"),
    ],
)
def test_names_without_a_tag_mean_latest_and_a_digest_counts_as_a_tag(name, full):
    assert normalized_image_name(name) == full


def test_an_image_counts_by_its_size_and_by_how_many_nodes_hold_it():
    scene = Scene(make_node("a", images={"app:1": 1000 * MIB}), make_node("b"))
    # Half of 1000 MiB, between 23 MiB and 1000 MiB: 100 * 477 / 977.
    assert scene.scores(ImageLocality(scene.cache.nodes), make_pod(images=["app:1"])) == {"a": 48, "b": 0}
    scene.add(make_node("b", images={"app:1": 1000 * MIB}))
    assert scene.scores(ImageLocality(scene.cache.nodes), make_pod(images=["app:1"])) == {"a": 100, "b": 100}


def test_small_images_score_nothing_and_large_ones_at_most_100():
    scene = Scene(make_node("a", images={"small:1": 23 * MIB, "large:1": 5000 * MIB, "absurd:1": 10**30}))
    plugin = ImageLocality(scene.cache.nodes)
    assert scene.score(plugin, make_pod(images=["small:1"])) == 0
    assert scene.score(plugin, make_pod(images=["large:1"])) == 100
    assert scene.score(plugin, make_pod(images=["absurd:1"] * 3)) == 100


def test_each_container_and_each_image_volume_raises_the_cap():
    scene = Scene(make_node("a", images={"app:1": 1000 * MIB, "data:1": 500 * MIB}))
    plugin = ImageLocality(scene.cache.nodes)
    init = [make_container("i", image="none:1")]
    volume = Volume(name="v", image=ImageVolumeSource(reference="data:1"))
    assert scene.score(plugin, make_pod(images=["app:1"], init_containers=init)) == 100 * 977 // 1977
    assert scene.score(plugin, make_pod(images=["data:1"], volumes=[volume])) == 100 * 977 // 1977
    assert scene.score(plugin, make_pod(images=["none:1"], volumes=[volume, Volume(name="w")])) == 100 * 477 // 1977


def test_a_name_listed_twice_on_a_node_counts_that_node_once():
    node = make_node("a", images={"app:1": 1000 * MIB})
    scene = Scene(node, make_node("b"))
    node.status.images.append(node.status.images[0])
    scene.add(node)
    assert scene.scores(ImageLocality(scene.cache.nodes), make_pod(images=["app:1"])) == {"a": 48, "b": 0}


def test_the_size_is_the_one_the_first_node_tells():
    scene = Scene(make_node("a", images={"app:1": 500 * MIB}), make_node("b", images={"app:1": 900 * MIB}))
    plugin = ImageLocality(scene.cache.nodes)
    assert scene.scores(plugin, make_pod(images=["app:1"])) == {"a": 48, "b": 48}
    scene.cache.remove_node("a")
    assert scene.scores(plugin, make_pod(images=["app:1"])) == {"b": 100 * 877 // 977}


def test_the_images_make_the_shape_wherever_they_stand():
    plugin = ImageLocality(Scene().cache.nodes)
    assert sign(plugin, images=["a"]) == sign(plugin, images=["a"])
    assert sign(plugin, images=["a"]) != sign(plugin, images=["b"])
    assert sign(plugin, images=["a"]) != sign(plugin, images=["a", "a"])
    volume = Volume(name="v", image=ImageVolumeSource(reference="b"))
    assert sign(plugin, images=["a", "b"]) == sign(plugin, images=["a"], volumes=[volume])
