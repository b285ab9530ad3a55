"""F14 and F17: a bind that hangs for as long as it may, and a pod that is another one before its bind is done."""

from tests.faults.final_state import broken, p17_p21_status
from tests.faults.history import History
from tests.faults.memory_api import PODS
from tests.faults.steps import Step, World
from tests.faults.virtual_time import cancel_all, run

from bayplan.api.client import ANSWER_SECONDS

ROOM_FOR_ONE = Step("node", {"name": "n1", "cpu": 2, "zone": "a"}, 5.0)
REQUEST_SECONDS = 60.0
"""How long an API server may still carry a request out."""
MOST_POSTS = 5


async def carry_out(*steps):
    """All posts by the name of the pod, the nodes of the pods that are left, and what was broken."""
    world, names = World(1), {}

    def remember(collection, obj):
        names[obj["metadata"]["uid"]] = obj["metadata"]["name"]

    world.api.watchers.append(remember)
    for step in steps:
        await world.act(step)
    await world.pause(250.0)
    found = [*History(world.api).broken(), *broken(world.api, world.life), *p17_p21_status(world.api)]
    posts = [(names[post.uid], post.at, post.uid) for post in world.api.posts]
    nodes = {pod["metadata"]["uid"]: pod["spec"].get("nodeName") for pod in world.api.objects[PODS].values()}
    await cancel_all()
    return posts, nodes, found


def hanging(times):
    return Step("fault", {"fault": "hangs", "verb": "BIND", "times": times})


def pod(name, wait=1.0):
    return Step("pod", {"name": name, "cpu": 2000}, wait)


def test_a_bind_that_hangs_is_looked_up_after_twelve_seconds_and_posted_again():
    posts, nodes, found = run(carry_out(ROOM_FOR_ONE, hanging(1), pod("p1", 1.0)))
    assert found == []
    (_, first, uid), (_, second, _) = posts
    assert ANSWER_SECONDS < second - first < ANSWER_SECONDS + 2.0
    assert nodes == {uid: "n1"}


def test_the_room_of_a_bind_that_hangs_is_nobody_elses_until_it_cannot_land_any_more():
    posts, nodes, found = run(carry_out(ROOM_FOR_ONE, hanging(MOST_POSTS), pod("p1", 5.0), pod("p2")))
    assert found == []
    hung, later = posts[:MOST_POSTS], posts[MOST_POSTS:]
    assert {name for name, *_ in hung} == {"p1"}
    assert later[0][1] - hung[-1][1] >= REQUEST_SECONDS
    assert later[0][1] - hung[-1][1] < REQUEST_SECONDS + 2 * ANSWER_SECONDS
    assert sorted(nodes.values(), key=str) == [None, "n1"]


def test_a_pod_recreated_before_its_bind_arrives_is_another_pod():
    held_up = Step("fault", {"fault": "429", "verb": "BIND", "times": 1})
    posts, nodes, found = run(carry_out(ROOM_FOR_ONE, held_up, pod("p1", 0.1), Step("replace", {"name": "p1"})))
    assert found == []
    (uid,) = nodes
    assert nodes == {uid: "n1"}
    assert posts[0][2] != uid
    assert [each for *_, each in posts].count(uid) == 1


def test_a_pod_recreated_while_its_bind_hangs_is_another_pod_and_gets_the_room_at_last():
    posts, nodes, found = run(carry_out(ROOM_FOR_ONE, hanging(1), pod("p1", 0.1), Step("replace", {"name": "p1"})))
    assert found == []
    (uid,) = nodes
    assert nodes == {uid: "n1"}
    assert [each for *_, each in posts].count(uid) == 1


def test_a_pod_recreated_while_its_condition_is_written_has_its_own():
    slow = Step("fault", {"fault": "slow", "verb": "PATCH", "times": 1, "seconds": 3.0})
    large = Step("pod", {"name": "p1", "cpu": 9000}, 0.1)
    _, nodes, found = run(carry_out(ROOM_FOR_ONE, slow, large, Step("replace", {"name": "p1"})))
    assert found == []
    assert list(nodes.values()) == [None]
