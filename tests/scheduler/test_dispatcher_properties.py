import asyncio
from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scheduler.dispatcher_scene import Scene


class RandomRun(Scene):
    """Performs steps by name and remembers what must come of them."""

    def __init__(self, **limits):
        super().__init__(**limits)
        self.expected = defaultdict(list)
        self.binds = []
        self.patches = defaultdict(list)
        self.obsolete = defaultdict(set)
        self.events_of = defaultdict(list)

    async def step(self, number, kind, value):
        self.expected[kind].append(number)
        uid = f"u{value}"
        if kind == "bind":
            # What was asked for before and is not on its way is not to be sent any more.
            bodies = self.patches[uid]
            sent = [bodies.index(body) for who, body in self.client.bodies if who == uid]
            self.obsolete[uid] |= set(bodies[max(sent, default=-1) + 1 :])
            self.dispatcher.submit(uid, f"n{value % 2}", lambda turn: self.job(number, uid, value), priority=value)
        elif kind == "event":
            self.events_of[uid].append(f"{uid}/e{number}")
            self.send(f"{uid}/e{number}", uid=uid, namespace=f"n{value % 2}", repeatable=number % 2 == 0)
        elif kind in {"patch", "urgent"}:
            body = str(number).encode()
            self.patches[uid].append(body)
            self.patch(uid, body, f"n{value % 2}", urgent=kind == "urgent")
        elif kind == "close":
            self.close()
        elif kind == "open":
            self.open()
        for _ in range(value if kind == "yield" else 0):
            await asyncio.sleep(0)

    async def job(self, number, uid, pauses):
        on_its_way = [body for who, body in self.client.on_its_way if who == uid]
        assert not set(on_its_way) & self.obsolete[uid], "it is sent while the pod is bound"
        for _ in range(pauses):
            await asyncio.sleep(0)
        self.binds.append(number)

    def check(self):
        assert sorted(self.binds) == self.expected["bind"]
        told = defaultdict(list)
        for path, _ in self.events.done:
            told[path.split("/")[0]].append(path)
        assert told == self.events_of
        sent = defaultdict(list)
        for uid, body in self.client.done:
            sent[uid].append(body)
        for uid, bodies in self.patches.items():
            assert sent[uid] == [body for body in bodies if body in sent[uid]], "doubled or out of order"
            assert not set(sent[uid]) & self.obsolete[uid], "obsolete"
            assert {body for who, body in self.lost if who == uid} == self.obsolete[uid]
            if bodies and bodies[-1] not in self.obsolete[uid]:
                assert sent[uid][-1] == bodies[-1]


KINDS = st.sampled_from(["bind", "event", "event", "patch", "patch", "patch", "urgent", "yield", "close", "open"])


@settings(max_examples=150)
@given(st.lists(st.tuples(KINDS, st.integers(0, 4)), max_size=60), st.integers(1, 4), st.integers(1, 4))
def test_nothing_is_lost_doubled_or_out_of_order_whatever_the_schedule(steps, binds, others):
    async def run():
        scene = RandomRun(binds=binds, others=others, slow_seconds=0.0)
        for number, (kind, value) in enumerate(steps):
            await scene.step(number, kind, value)
        scene.open()
        await scene.drain()
        scene.check()

    asyncio.run(run())
