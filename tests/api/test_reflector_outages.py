"""A reflector is back within seconds of the API server's return, however long that was away."""

import asyncio

import pytest
from tests.api.reflecting import PODS, pod, reflecting, truth
from tests.faults import faults
from tests.waiting import Sleeps, until

OUTAGE = 30


@pytest.mark.parametrize("fault", [faults.Reset(), faults.Refuse(500), faults.Refuse(503)], ids=repr)
async def test_while_the_server_is_away_it_is_asked_every_four_seconds_at_the_latest(server, fault):
    sleeps = Sleeps()
    async with reflecting(server, sleeps=sleeps) as _:
        await until(lambda: server.watches(PODS))
        server.inject(fault, times=OUTAGE)
        server.end_watches()
        await until(lambda: len(server.requests) > OUTAGE + 2)
        assert sleeps.delays[0] <= 1.6
        assert max(sleeps.delays) <= 4.0
        assert sum(sleeps.delays) > 3.0 * len(sleeps.delays), "and not much more often"


async def test_a_version_that_expired_during_an_outage_is_listed_anew_at_once(server):
    watches_before_wait, watches_before_list = [], []

    async def sleep(seconds):
        watches_before_wait.append(server.watches(PODS))
        await asyncio.sleep(0)

    server.put(PODS, pod("a"))
    async with reflecting(
        server, sleeps=sleep, on_recovered=lambda: watches_before_list.append(server.watches(PODS))
    ) as (reflector, view):
        await until(lambda: server.watches(PODS))
        server.inject(faults.Reset(), times=OUTAGE)
        server.inject(faults.StreamError(410), method="WATCH")
        server.put(PODS, pod("b"))
        server.end_watches()
        await until(lambda: reflector.relists_total == 1)
        await until(lambda: view.versions() == truth(server))
    answered_410 = watches_before_list[-1]
    assert watches_before_wait[-1] == answered_410 - 1, "no wait between the 410 and the list"


async def test_a_version_that_expires_again_right_after_its_list_waits_longer_each_time(server):
    sleeps = Sleeps()
    async with reflecting(server, sleeps=sleeps) as (reflector, _):
        await until(lambda: server.watches(PODS))
        server.inject(faults.StreamError(410), method="WATCH", times=6)
        server.end_watches()
        await until(lambda: reflector.relists_total == 6)
        own = sleeps.delays[1:]
        assert len(own) == 5
        assert own[4] > 8 * own[0] / 2
        assert own[4] <= 30.0


@pytest.mark.parametrize("refusal", [faults.Refuse(403), faults.Refuse(429, retry_after=1)], ids=["403", "429"])
async def test_a_refusal_after_an_outage_is_a_new_trouble_with_a_short_delay(server, refusal):
    sleeps = Sleeps()
    async with reflecting(server, sleeps=sleeps) as (reflector, _):
        await until(lambda: server.watches(PODS))
        server.inject(faults.Reset(), times=OUTAGE)
        server.inject(refusal)
        server.end_watches()
        await until(lambda: server.watches(PODS) == 3 + OUTAGE)
        assert sleeps.delays[-1] <= 1.6
        assert reflector.relists_total == 0


async def test_one_answered_error_after_an_outage_does_not_make_the_version_suspect(server):
    async with reflecting(server) as (reflector, _):
        await until(lambda: server.watches(PODS))
        server.inject(faults.Reset(), times=OUTAGE)
        server.inject(faults.Refuse(503))
        server.end_watches()
        await until(lambda: server.watches(PODS) == 3 + OUTAGE)
        assert reflector.relists_total == 0


async def test_the_end_of_an_outage_is_told_and_so_is_every_further_list(server):
    told = []
    async with reflecting(server, on_recovered=lambda: told.append(reflector.relists_total)) as (reflector, _):
        await until(lambda: server.watches(PODS) == 1)
        server.inject(faults.Reset(), times=3)
        server.end_watches()
        await until(lambda: server.watches(PODS) == 5)
        await until(lambda: told)
        server.inject(faults.StreamError(410), method="WATCH")
        server.end_watches()
        await until(lambda: server.watches(PODS) == 7)
        server.end_watches()
        await until(lambda: server.watches(PODS) == 8)
        assert told == [0, 1]
