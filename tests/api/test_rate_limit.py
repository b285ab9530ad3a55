import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clock import Clock
from tests.waiting import Sleeps

from bayplan.api.backoff import TokenBucket


def bucket(clock, qps, burst, sleep=None):
    return TokenBucket(qps=qps, burst=burst, clock=clock, sleep=sleep or Sleeps())


async def test_a_burst_goes_at_once_and_the_rest_in_turn():
    limit = bucket(Clock(1000.0), qps=10, burst=3)
    assert [await limit.wait() for _ in range(6)] == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3])


async def test_idle_time_fills_the_bucket_no_further_than_the_burst():
    clock = Clock(1000.0)
    limit = bucket(clock, qps=10, burst=2)
    for _ in range(2):
        limit.reserve()
    clock.now += 1000.0
    assert [limit.reserve() for _ in range(3)] == pytest.approx([0, 0, 0.1])


@pytest.mark.parametrize("qps", [0, -1])
async def test_no_rate_means_no_limit(qps):
    sleeps = Sleeps()
    limit = bucket(Clock(1000.0), qps=qps, burst=1, sleep=sleeps)
    assert [await limit.wait() for _ in range(100)] == [0.0] * 100
    assert sleeps.delays == []


async def test_a_cancelled_wait_gives_its_token_back():

    async def cancelled(seconds):
        raise asyncio.CancelledError

    limit = bucket(Clock(1000.0), qps=10, burst=1, sleep=cancelled)
    limit.reserve()
    with pytest.raises(asyncio.CancelledError):
        await limit.wait()
    assert limit.reserve() == pytest.approx(0.1)


@given(st.lists(st.floats(0, 1), max_size=50), st.floats(0.5, 100), st.integers(1, 20))
def test_nobody_overtakes_and_no_window_sees_more_than_burst_and_rate(gaps, qps, burst):
    clock = Clock(1000.0)
    limit = bucket(clock, qps, burst)
    starts = []
    for gap in gaps:
        clock.now += gap
        starts.append(clock.now + limit.reserve())
    assert starts == sorted(starts)
    for first, start in enumerate(starts):
        for last in range(first, len(starts)):
            assert last - first + 1 <= burst + (starts[last] - start) * qps + 1e-6
