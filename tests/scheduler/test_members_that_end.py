"""Pods of a gang that end: whether they are counted with the pods that come under the name of their group."""

import pytest
from tests.cache_checks import assert_adds_up
from tests.group_builders import make_pod_group
from tests.scheduler.group_scene import GroupScene, nodes_of
from tests.scheduler.test_pod_group_round import P

from bayplan.cache.group_members import POD_GROUP_LABEL
from bayplan.scheduler.pod_group_round import RoundStatus

LABEL = {POD_GROUP_LABEL: "g"}


@pytest.fixture
def scene():
    return GroupScene()


def test_a_gang_that_is_submitted_again_does_not_start_beside_the_ending_pods_of_the_one_before(scene):
    for number in range(2):
        pod = scene.bound(f"before-{number}", cpu="3", node=f"n{number}", labels=LABEL)
        scene.bound(pod.name, uid=pod.uid, cpu="3", node=f"n{number}", labels=LABEL, deleting=True)
    assert_adds_up(scene.cache)
    group = make_pod_group(least=2, crd=True)
    members = scene.queued("1", "3", group=None, labels=LABEL)
    assert scene.run(group, members).message == f"minCount (2) cannot be satisfied: 1 scheduled, 0 remaining, {P}"
    scene.cache.remove_pod(pod.uid)
    assert nodes_of(scene.run(group, members)) == {"p0": "n0", "p1": "n1"}


def test_pods_of_kubernetes_own_group_count_until_they_are_gone(scene):
    scene.bound("there", group="g", deleting=True)
    assert scene.run(make_pod_group(least=2), scene.queued("1")).status is RoundStatus.SCHEDULED
