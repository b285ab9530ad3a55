"""Random lives of pods in groups: every pod is in exactly one place, and none is lost."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.builders import make_pod_info
from tests.group_builders import make_pod_group
from tests.queue.scene import FIT
from tests.queue.test_pod_groups import GroupScene, member
from tests.queue_checks import assert_consistent

from bayplan.cache.group_members import GroupSource
from bayplan.framework.cluster_event import ASSIGNED_POD_ADD
from bayplan.queue.queued_pod_group import QueuedPodGroup

GROUPS = st.sampled_from(["g", "h", ""])


class GroupMachine(RuleBasedStateMachine):
    """Whatever comes, the queue holds exactly the pods that live, and pops no group that has too few members."""

    def __init__(self):
        super().__init__()
        self.scene = GroupScene(GroupSource.CRD)
        self.queue = self.scene.queue
        self.alive: dict[str, str] = {}
        self.rounds: list[QueuedPodGroup] = []
        self.binding: list = []
        self.versions = 0

    def pod(self, uid: str, gates=()):
        self.versions += 1
        fields = {"resource_version": str(self.versions), "gates": gates}
        group = self.alive[uid]
        return member(uid, group, **fields) if group else make_pod_info(uid, uid=uid, **fields)

    @rule(group=GROUPS, gates=st.sampled_from([[], [], ["wait"]]))
    def add(self, group, gates):
        self.versions += 1
        uid = f"p{self.versions}"
        self.alive[uid] = group
        self.queue.add(self.pod(uid, gates))

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def update(self, data):
        self.queue.update(self.pod(data.draw(st.sampled_from(sorted(self.alive)))))

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def delete(self, data):
        uid = data.draw(st.sampled_from(sorted(self.alive)))
        del self.alive[uid]
        self.queue.delete(uid)

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def bound_by_hand(self, data):
        uid = data.draw(st.sampled_from(sorted(self.alive)))
        pod = member(uid, self.alive.pop(uid) or "other", node="n1")
        self.scene.cache.set_pod(pod)
        self.queue.delete(uid)
        self.queue.move_all(ASSIGNED_POD_ADD, None, pod)

    @rule(name=st.sampled_from(["g", "h"]), least=st.integers(1, 4))
    def set_group(self, name, least):
        self.queue.set_group(make_pod_group(name, least=least))

    @rule(name=st.sampled_from(["g", "h"]))
    def remove_group(self, name):
        self.queue.remove_group(make_pod_group(name).key)

    @rule(source=st.sampled_from(GroupSource))
    def serve(self, source):
        self.scene.groups.serve(source)
        self.queue.regroup()

    @rule()
    def pop(self):
        popped = self.queue.pop()
        if isinstance(popped, QueuedPodGroup):
            there = len(self.scene.groups.placed(popped.group.key))
            assert popped.members
            assert len(popped.members) + there >= popped.group.least, "a gang with too few members popped"
            assert not any(each.pod_info.pod.spec.scheduling_gates for each in popped.members.values())
            self.rounds.append(popped)
        elif popped is not None:
            self.binding.append(popped)

    @precondition(lambda self: self.rounds)
    @rule(data=st.data(), failed=st.booleans(), error=st.booleans(), waits=st.booleans())
    def finish(self, data, failed, error, waits):
        entity = self.rounds.pop(data.draw(st.integers(0, len(self.rounds) - 1)))
        for each in entity.members.values():
            if failed or data.draw(st.booleans()):
                self.queue.add_unschedulable(each, rejector_plugins=frozenset(), error=error)
            else:
                self.binding.append(each)
        self.queue.finish_round(entity, failed=failed, error=error, waits=waits)

    @precondition(lambda self: self.binding)
    @rule(data=st.data(), ended=st.sampled_from(["bound", "error", "rejected"]))
    def end_attempt(self, data, ended):
        queued = self.binding.pop(data.draw(st.integers(0, len(self.binding) - 1)))
        if ended == "bound":
            self.alive.pop(queued.uid, None)
            self.queue.done(queued.uid)
        else:
            self.queue.add_unschedulable(queued, rejector_plugins=FIT, error=ended == "error")

    @rule(seconds=st.integers(0, 12))
    def wait(self, seconds):
        self.scene.wait(seconds)

    @invariant()
    def every_pod_is_in_one_place(self):
        assert_consistent(self.queue)
        assert self.queue.uids() == self.alive.keys()
        waiting = [each.uid for each in self.queue.queued()]
        flying = [pod.uid for pod in self.queue.in_flight()]
        assert sorted(waiting + flying) == sorted(self.alive), "a pod is in two places, or in none"
        assert sum(self.queue.pending().values()) == len(waiting)


GroupMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestGroupMachine = GroupMachine.TestCase
