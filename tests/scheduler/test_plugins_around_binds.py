"""Reserve, Permit, Bind and PostBind plugins: what they reserved is given back unless the pod was bound."""

from types import SimpleNamespace as Hook

import pytest

from bayplan.cache.pod_info import PodInfo
from bayplan.framework.status import Code, Status
from bayplan.queue.queued_pod import SubQueue
from bayplan.scheduler.binder import BindError, BindResult


def refuse(code=Code.UNSCHEDULABLE):
    return lambda state, pod, node: Status(code, ("not here",))


def reserving(log, name, reserve=None):
    """A Reserve plugin that notes what it does; `reserve` stands for its answer."""
    return Hook(
        name=name,
        reserve=reserve or (lambda *_: log.append(f"reserve {name}") or Status()),
        unreserve=lambda *_: log.append(f"unreserve {name}"),
    )


async def test_post_bind_plugins_hear_of_bound_pods_only(scene):
    heard = []
    scene.framework.post_binds = [Hook(name="Post", post_bind=lambda pod, node: heard.append((pod.uid, node)))]
    await scene.first_attempt()
    scene.binder.result = BindResult.GONE
    scene.pod("q")
    await scene.attempt()
    assert heard == [("p", "n1")]


@pytest.mark.parametrize("point", ["reserve", "permit"])
async def test_a_rejection_after_the_choice_undoes_what_was_reserved(scene, point):
    log = []
    scene.framework.reserves = [reserving(log, "First")]
    if point == "reserve":
        scene.framework.reserves.append(reserving(log, "Last", refuse()))
    else:
        scene.framework.permits = [Hook(name="Last", permit=refuse())]
    scene.node()
    scene.node("n2")
    scene.pod()
    queued = await scene.attempt()
    assert log == ["reserve First", *(["unreserve Last"] if point == "reserve" else []), "unreserve First"]
    assert queued.rejector_plugins == {"Last"}
    assert scene.said() == [("p", "FailedScheduling", "0/1 nodes are available: 1 not here.")]
    assert (scene.cache.node_of("p"), scene.binder.bindings) == (None, [])


async def test_an_error_after_the_choice_backs_off(scene):
    scene.framework.reserves = [reserving([], "Last", refuse(Code.ERROR))]
    await scene.first_attempt()
    assert scene.sub_queue_of() is SubQueue.ERROR_BACKOFF
    assert scene.dispatcher.patches == [("p", "SchedulerError", 'running Reserve plugin "Last": not here')]


async def test_an_exception_after_the_choice_undoes_everything(scene):
    log = []

    def broken(pod, node_name):
        raise RuntimeError("boom")

    scene.framework.reserves = [reserving(log, "First")]
    scene.framework.binds = [Hook(name="Bind", bind=broken)]
    await scene.first_attempt()
    assert log == ["reserve First", "unreserve First"]
    assert (scene.cache.node_of("p"), scene.sub_queue_of()) == (None, SubQueue.ERROR_BACKOFF)


@pytest.mark.parametrize("result", [BindResult.GONE, BindError("x"), BindResult.BOUND], ids=repr)
async def test_what_was_reserved_is_given_back_unless_the_pod_was_bound(scene, result):
    log = []
    scene.framework.reserves = [reserving(log, "First")]
    scene.binder.result = result
    await scene.first_attempt()
    assert log == ["reserve First", *([] if result is BindResult.BOUND else ["unreserve First"])]


async def test_what_was_reserved_is_given_back_for_a_pod_that_was_never_bound_after_all(scene, caplog):
    log = []
    broken = Hook(name="Broken", reserve=lambda *_: Status(), unreserve=lambda state, *_: state["not there any more"])
    scene.framework.reserves = [reserving(log, "First"), broken]
    await scene.first_attempt(cpu="3")
    assert log == ["reserve First"]
    pod = scene.pod("waits", cpu="3")
    await scene.attempt()
    # As the API server shows it when etcd was restored from before the bind.
    scene.scheduler.never_bound(scene.cache.pod("p"))
    assert log == ["reserve First", "unreserve First"]
    assert "a Reserve plugin did not give back what it took pod='default/p'" in caplog.text
    assert scene.cache.node_of("p") is None
    assert scene.sub_queue_of(pod.metadata.uid) is not SubQueue.UNSCHEDULABLE, "it may use the room"
    scene.scheduler.never_bound(PodInfo(pod))
    assert log == ["reserve First", "unreserve First"], "a pod that is not assumed has reserved nothing"


async def test_a_pods_state_reaches_every_plugin_of_its_attempt_and_no_other_pods(scene):
    seen = []

    def reserve(state, pod, node_name):
        assert "mine" not in state
        state["mine"] = pod.uid
        return Status()

    def look(state, pod, node_name):
        seen.append((state["mine"], "NodeResourcesFit" in state))
        return Status()

    scene.framework.reserves = [Hook(name="First", reserve=reserve, unreserve=look)]
    scene.framework.permits = [Hook(name="Second", permit=look)]
    scene.framework.pre_binds = [Hook(name="Third", pre_bind=lambda *given: look(*given) and None)]
    scene.binder.result = BindResult.GONE
    scene.node()
    for name in ("p", "q"):
        scene.pod(name)
        scene.step()
    await scene.dispatcher.run()
    assert seen == [(uid, True) for uid in ("p", "p", "q", "q", "p", "q")]


@pytest.mark.parametrize("result", [BindResult.TAKEN, BindResult.GONE])
async def test_what_a_pod_reserved_that_is_not_ours_to_bind_any_more_is_given_back(scene, result):
    given_back = []
    scene.framework.reserves = [
        Hook(
            name="First",
            reserve=lambda state, pod, node: Status(),
            unreserve=lambda state, pod, node: given_back.append(pod.uid),
        )
    ]
    scene.binder.result = result
    scene.node()
    scene.pod("p")
    scene.step()
    await scene.dispatcher.run()
    assert given_back == ["p"]
