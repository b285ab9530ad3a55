import tracemalloc

import pytest
from tests.plugins.volume_scenes import claim, ref, volume

from bayplan.plugins.volume_binding.class_volumes import ClaimRequirements, ClassVolumes

CLAIM = claim(size=0)
ANY = ClaimRequirements.of(CLAIM)


def names(volumes):
    return [volumes.volumes[slot].metadata.name for slot in volumes.fitting(ANY).slots.tolist()]


def test_free_volumes_come_by_size_and_the_first_of_equals_first():
    volumes = ClassVolumes()
    for name, size in (("b", "2Gi"), ("c", "2048Mi"), ("a", "1Gi")):
        volumes.set(volume(name, size=size))
    assert names(volumes) == ["a", "b", "c"]
    volumes.set(volume("b", size="2Gi", claim_ref=ref()))
    assert names(volumes) == ["a", "c"]
    assert [volumes.volumes[slot].metadata.name for slot in volumes.prebound(CLAIM, ANY)] == ["b"]
    volumes.set(volume("b", size="1Mi"))
    assert names(volumes) == ["b", "a", "c"]
    assert volumes.prebound(CLAIM, ANY) == []


def test_the_room_of_volumes_that_are_gone_is_used_again():
    volumes = ClassVolumes()
    for number in range(2000):
        volumes.set(volume(f"v{number}", on=f"n{number}", size=number + 1))
        if number >= 10:
            volumes.delete(f"v{number - 10}")
    assert names(volumes) == [f"v{number}" for number in range(1990, 2000)]
    assert len(volumes.volumes) < 200
    for number in range(1990, 2000):
        assert not volumes.is_empty
        volumes.delete(f"v{number}")
    volumes.delete("v0")
    assert volumes.is_empty


@pytest.mark.parametrize(
    "change",
    [
        lambda volumes, number: volumes.fitting(ClaimRequirements.of(claim(size=number))),
        lambda volumes, number: volumes.set(volume("v0", size=number)),
        lambda volumes, number: volumes.set(volume("v0", on=f"n{number}")),
    ],
    ids=["requests", "sizes", "affinities"],
)
def test_what_ever_new_values_leave_behind_is_bounded(change):
    volumes = ClassVolumes()
    for number in range(100):
        volumes.set(volume(f"v{number}", size=10_000))
    tracemalloc.start()
    try:
        for number in range(4000):
            change(volumes, number)
        assert tracemalloc.get_traced_memory()[0] < 250_000
    finally:
        tracemalloc.stop()
