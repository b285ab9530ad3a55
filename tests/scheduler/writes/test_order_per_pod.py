"""What is written about one pod is written in order, however slow the API server is."""

from tests.faults.faults import Delay, Refuse
from tests.scheduler.writes.running import running
from tests.waiting import until


async def bind_the_rejected(scene, count, *, after):
    """All pods are rejected, and there is room once `after` holds; returns the writes by pod."""
    names = {f"p{number}" for number in range(count)}
    await scene.pods(*names, cpu="1m")
    await until(after)
    scene.node("n1", "64")
    scene.node("n2", "64")
    await until(lambda: scene.bound() == names)
    await scene.dispatcher.drain(binds_seconds=30, calls_seconds=30)
    return scene.writes_by_pod()


async def test_a_bind_is_the_last_write_on_its_pod():
    async with running((Delay(0.02), {"path": "/pods/"}), nodes=[("full", "0")]) as scene:
        written = await bind_the_rejected(scene, 120, after=scene.patches)
        assert [name for name, writes in written.items() if "condition" in writes[writes.index("bind") :]] == []


async def test_a_pod_is_never_said_to_fail_after_it_was_said_to_be_bound():
    async with running((Refuse(503), {"path": "/events", "times": 16}), nodes=[("full", "0")]) as scene:
        written = await bind_the_rejected(scene, 8, after=lambda: len(scene.events()) >= 16)
        told = [[each for each in writes if each not in {"bind", "condition"}] for writes in written.values()]
        assert [writes for writes in told if writes[-1] != "Scheduled"] == []
