from tests.plugins.volume_scenes import ref, volume

from bayplan.plugins.volume_binding.class_volumes import VolumeShelf, Wish

ANY = Wish(0, "Filesystem", "", frozenset(), None)


def names(shelf):
    return [shelf.volumes[slot].metadata.name for slot in shelf.fitting(ANY).slots.tolist()]


def test_free_volumes_come_by_size_and_the_first_of_equals_first():
    shelf = VolumeShelf()
    for name, size in (("b", "2Gi"), ("c", "2048Mi"), ("a", "1Gi")):
        shelf.put(volume(name, size=size))
    assert names(shelf) == ["a", "b", "c"]
    shelf.put(volume("b", size="2Gi", claim_ref=ref()))
    assert names(shelf) == ["a", "c"]
    assert [shelf.volumes[slot].metadata.name for slot in shelf.meant_for("default/c")] == ["b"]
    shelf.put(volume("b", size="1Mi"))
    assert names(shelf) == ["b", "a", "c"]
    assert shelf.meant_for("default/c") == []


def test_the_room_of_volumes_that_are_gone_is_used_again():
    shelf = VolumeShelf()
    for number in range(2000):
        shelf.put(volume(f"v{number}", on=f"n{number}", size=number + 1))
        if number >= 10:
            shelf.drop(f"v{number - 10}")
    assert names(shelf) == [f"v{number}" for number in range(1990, 2000)]
    assert len(shelf.volumes) < 200
    for number in range(1990, 2000):
        assert not shelf.is_empty
        shelf.drop(f"v{number}")
    shelf.drop("v0")
    assert shelf.is_empty
