"""Groups of thousands: what they cost grows with their members, and not with the square of them."""

from tests.group_builders import make_pod_group
from tests.queue.test_pod_groups import GroupScene, member

from bayplan.cache.pod_info import PodInfo


class LookedAt(PodInfo):
    """A pod that counts how often any of them is asked for its priority."""

    looks = 0

    @property
    def priority(self) -> int:
        LookedAt.looks += 1
        return self.pod.spec.priority or 0

    @priority.setter
    def priority(self, value: int) -> None:
        pass


def test_five_thousand_members_come_are_tried_and_go_and_each_is_looked_at_a_few_times():
    scene = GroupScene()
    pods = [LookedAt(member(f"p{number}").pod) for number in range(5000)]
    for pod in pods:
        scene.queue.add(pod)
    scene.queue.set_group(make_pod_group(least=5000))
    entity = scene.queue.pop()
    for queued in entity.members.values():
        scene.queue.add_unschedulable(queued, rejector_plugins=frozenset(), error=False)
    scene.queue.finish_round(entity, failed=True, waits=True)
    for pod in pods:
        scene.queue.delete(pod.uid)
    assert scene.queue.uids() == set()
    assert len(pods) < LookedAt.looks < 20 * len(pods)
