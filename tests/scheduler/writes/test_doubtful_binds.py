"""Binds in doubt take as long as they take, and hold up no other."""

from tests.faults.faults import BlackHole, Refuse
from tests.scheduler.writes.running import running
from tests.waiting import until


async def test_pods_whose_binds_stay_in_doubt_stop_no_other_bind():
    stuck = [f"stuck{number}" for number in range(100)]
    lost, unread = (Refuse(503), {"path": "/pods/stuck"}), (BlackHole(), {"path": "/pods/stuck", "method": "GET"})
    async with running(unread, lost, nodes=[("n1", "64")]) as scene:
        await scene.pods(*stuck, cpu="1m", priority=1)
        await scene.pods("other", cpu="1m")
        await until(lambda: scene.node_of("other") == "n1", seconds=60)
        assert scene.bound() == {"other"}
        assert len(scene.cache.assumed_pods()) >= len(stuck), "their room stays theirs"
