import asyncio

import pytest

from bayplan.server.reviews import KEEP_BYTES, ReviewCache


class Asked:
    """Answers with what it was told, and counts."""

    def __init__(self):
        self.times = 0
        self.answer = "yes"
        self.open = asyncio.Event()
        self.open.set()

    async def __call__(self):
        self.times += 1
        await self.open.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def asked():
    return Asked()


async def test_an_answer_holds_as_long_as_it_says(asked):
    now = [0.0]
    cache = ReviewCache(lambda answer: 10.0 if answer == "yes" else 1.0, len, clock=lambda: now[0])
    for at, answer, times in [(0.0, "yes", 1), (9.9, "no", 1), (10.0, "no", 2), (10.9, "no", 2), (11.0, "no", 3)]:
        now[0], asked.answer = at, answer
        await cache.get(b"k", asked)
        assert asked.times == times, at


async def test_all_who_want_the_same_at_once_wait_for_one_question(asked):
    cache = ReviewCache(lambda _: 10.0, len)
    asked.open.clear()
    waiting = [asyncio.create_task(cache.get(b"k", asked)) for _ in range(5)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting[0].cancel()
    asked.open.set()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert (asked.times, answers[1:]) == (1, ["yes"] * 4)


async def test_a_failure_is_everybodys_who_waited_and_nobodys_after(asked):
    cache = ReviewCache(lambda _: 10.0, len)
    asked.answer = ValueError("no")
    with pytest.raises(ValueError, match="no"):
        await cache.get(b"k", asked)
    asked.answer = "yes"
    assert await cache.get(b"k", asked) == "yes"


async def test_made_up_tokens_do_not_fill_the_memory(asked, allocated):
    cache = ReviewCache(lambda _: 10.0, len)
    before = allocated()
    for number in range(5000):
        asked.answer = "x" * (number % 400)
        await cache.get(b"%d" % number, asked)
    assert cache.size <= KEEP_BYTES
    assert allocated() - before <= KEEP_BYTES


async def test_an_answer_that_is_too_large_is_not_kept(asked):
    cache = ReviewCache(lambda _: 10.0, lambda _: KEEP_BYTES)
    assert await cache.get(b"k", asked) == "yes"
    assert cache.size == 0
