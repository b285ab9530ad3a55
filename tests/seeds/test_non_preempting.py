"""What the documentation says of pods with preemptionPolicy: Never."""

from tests.builders import make_node
from tests.plugins.preemption.worlds import World
from tests.queue.scene import Scene
from tests.seeds.scenes import HIGH, LOW, MIDDLE, NEVER, pending, running
from tests.simulate.test_simulator import simulator

from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import ASSIGNED_POD_DELETE
from bayplan.queue.queued_pod import SubQueue
from bayplan.scheduler.decision import FitError


def test_a_pod_preempts_pods_of_lower_priority_unless_its_policy_is_never():
    world = World(make_node("n1", cpu="4"), running("old"))
    assert world.preempt(pending()) == ("n1", ["old"])
    assert world.preempt(pending(preemption_policy="PreemptLowerPriority")) == ("n1", ["old"])
    assert world.post_filter_message(pending(**NEVER)) == "preemption: not eligible due to preemptionPolicy=Never."


def test_a_non_preempting_pod_is_tried_before_pods_of_lower_priority_and_evicts_nobody():
    cluster = [running("old"), pending("middle", priority=MIDDLE), pending("never", **NEVER)]
    first, second = simulator([make_node("n1", cpu="4")], cluster).run().pods
    assert (first.name, first.attempts[0].victims) == ("never", [])
    assert (second.name, second.attempts[0].victims) == ("middle", ["default/old"])


def test_a_non_preempting_pod_fits_as_soon_as_enough_room_comes_by_itself():
    world = World(make_node("n1", cpu="4"), running("old"), running("other"))
    never = PodInfo(pending("never", cpu="2", **NEVER))
    assert isinstance(world.schedule(never), FitError)
    world.cache.remove_pod("old")
    assert world.schedule(never).node_name == "n1"


def test_a_non_preempting_pod_stays_in_the_queue_and_is_tried_first_when_room_comes():
    scene = Scene()
    scene.reject("never", priority=HIGH, **NEVER)
    scene.clock.step(200)
    assert scene.sub_queue("never") is SubQueue.UNSCHEDULABLE
    scene.queue.move_all(ASSIGNED_POD_DELETE, None, None)
    scene.add("low", priority=LOW)
    assert scene.drain() == ["never", "low"]


def test_a_non_preempting_pod_that_backs_off_lets_pods_of_lower_priority_go_first():
    scene = Scene()
    scene.reject("never", priority=HIGH, **NEVER)
    scene.queue.move_all(ASSIGNED_POD_DELETE, None, None)
    assert scene.sub_queue("never") is SubQueue.BACKOFF
    scene.add("low", priority=LOW)
    assert scene.drain() == ["low", "never"]


def test_a_non_preempting_pod_is_retried_less_and_less_often():
    scene = Scene()
    scene.add("never", priority=HIGH, **NEVER)
    waits = []
    for _ in range(6):
        scene.fail(scene.pop())
        scene.queue.move_all(ASSIGNED_POD_DELETE, None, None)
        retried = scene.queue.next_deadline()
        waits.append(retried - scene.clock.now)
        scene.clock.now = retried
        scene.queue.flush(retried)
        assert scene.sub_queue("never") is SubQueue.ACTIVE
    assert waits == sorted(waits)
    assert waits[0] < waits[1] < waits[2] < waits[3] < waits[4] == waits[5]


def test_a_non_preempting_pod_may_be_evicted_for_a_pod_of_higher_priority():
    world = World(make_node("n1", cpu="4"), running("never", priority=MIDDLE, **NEVER))
    assert world.preempt(pending()) == ("n1", ["never"])
