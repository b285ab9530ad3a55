"""What hostile pods took is given back once they are gone and nobody needs it for a while, without another decision."""

import pytest
from tests.hostile.test_memory import MIB, terms
from tests.hostile.world import HOST, Pod, World, decoded, expression, near_pods, pod, requests, term

from bayplan.cache.pod_info import PodInfo

HOSTILE = 6


def apart(name, **spec):
    """A pod that may not be near others of its name, so that tables of pods are asked where those are."""
    return pod(name, **spec, **near_pods("podAntiAffinity", [term(HOST, expression("app", "In", name))]))


def large(serial, **spec):
    """A pod that takes more than a mebibyte."""
    return pod(f"large-{serial}", **terms(700, serial), **spec)


def full_of_large_pods(world):
    pods = [large(serial, **requests(cpu="60"), priority=0) for serial in range(HOSTILE)]
    for index, document in enumerate(pods):
        world.place(document, f"n{index}")
    return pods


def try_out_evictions(world):
    pods = [*full_of_large_pods(world), apart("high", priority=9, **requests(cpu="10"))]
    assert "potential placement for pod on node" in world.schedule(pods[-1])
    return pods


def nominate(world):
    pods = [*full_of_large_pods(world), apart("high", priority=9, **requests(cpu="1"))]
    world.pending.changed(decoded(Pod, pods[-1]))
    world.queue.nominate(PodInfo(decoded(Pod, pods[-1])), "n0")
    lower = apart("lower", priority=1, **requests(cpu="1"))
    assert world.schedule(lower).startswith("-> ")
    return [*pods, lower]


def decide_on_large_ones(world):
    pods = [large(serial) for serial in range(HOSTILE)]
    for each in pods:
        assert world.schedule(each).startswith("-> ")
    return pods


@pytest.mark.parametrize("use", [try_out_evictions, nominate, decide_on_large_ones])
def test_pods_that_are_gone_are_let_go_of_while_the_scheduler_rests(allocated, use):
    world = World(nodes=HOSTILE, pods=0)
    world.ends_victims = False
    world.assert_unharmed()
    before = allocated()
    pods = use(world)
    there = allocated() - before
    for document in pods:
        world.assigned.on_delete(decoded(Pod, document))
        world.pending.gone(document["metadata"]["uid"])
    del pods
    world.outcomes.clear()
    world.rest()
    left = allocated() - before
    assert there > HOSTILE * MIB
    # Hash tables that were large do not shrink.
    assert left < 2 * MIB


def test_what_evictions_were_tried_on_goes_while_other_pods_are_scheduled(allocated):
    world = World(nodes=HOSTILE, pods=0)
    world.ends_victims = False
    world.assert_unharmed()
    before = allocated()
    pods = try_out_evictions(world)
    for document in pods:
        world.assigned.on_delete(decoded(Pod, document))
        world.pending.gone(document["metadata"]["uid"])
    del pods
    world.outcomes.clear()
    for _ in range(2):
        world.assert_unharmed()
        world.rest(periods=1)
    # The terms that went are told to whoever asks for them, within a bound.
    assert allocated() - before < 3 * MIB
