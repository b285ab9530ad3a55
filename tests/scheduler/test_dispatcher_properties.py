import asyncio
from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scheduler.dispatcher_scene import Scene


class RandomRun(Scene):
    """Performs steps by name and remembers what must come of them."""

    def __init__(self, **workers):
        super().__init__(**workers)
        self.expected = defaultdict(list)
        self.binds = []
        self.patches = defaultdict(list)

    async def step(self, number, kind, value):
        self.expected[kind].append(number)
        if kind == "bind":
            self.dispatcher.submit(lambda: self.job(number, value))
        elif kind == "send":
            self.send(f"e{number}")
        elif kind == "patch":
            body = str(number).encode()
            self.patches[f"u{value}"].append(body)
            self.patch(f"u{value}", body)
        elif kind == "close":
            self.close()
        elif kind == "open":
            self.open()
        for _ in range(value if kind == "yield" else 0):
            await asyncio.sleep(0)

    async def job(self, number, pauses):
        for _ in range(pauses):
            await asyncio.sleep(0)
        self.binds.append(number)

    def check(self):
        assert sorted(self.binds) == self.expected["bind"]
        assert sorted(path for path, _ in self.events.done) == sorted(f"e{n}" for n in self.expected["send"])
        sent = defaultdict(list)
        for uid, body in self.client.done:
            sent[uid].append(body)
        assert sent.keys() == self.patches.keys()
        for uid, bodies in sent.items():
            assert bodies == [body for body in self.patches[uid] if body in bodies], "doubled or out of order"
            assert bodies[-1] == self.patches[uid][-1]
        assert self.lost == []


KINDS = st.sampled_from(["bind", "send", "patch", "patch", "yield", "close", "open"])


@settings(max_examples=60)
@given(st.lists(st.tuples(KINDS, st.integers(0, 4)), max_size=60), st.integers(1, 4), st.integers(1, 4))
def test_nothing_is_lost_doubled_or_out_of_order_whatever_the_schedule(steps, bind_workers, call_workers):
    async def run():
        scene = RandomRun.started(bind_workers=bind_workers, call_workers=call_workers)
        for number, (kind, value) in enumerate(steps):
            await scene.step(number, kind, value)
        scene.open()
        await scene.drain()
        scene.check()

    asyncio.run(run())
