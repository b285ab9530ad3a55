import asyncio

import pytest
from tests.clock import Clock

from bayplan.server.turns import AHEAD_SECONDS, PeerTurns


class Scene:
    """Turns on a clock that passes as it is slept, and the order in which they were given."""

    def __init__(self, per_second=4.0, **options):
        self.clock = Clock()
        self.turns = PeerTurns(per_second, **options, clock=self.clock, sleep=self.sleep)
        self.given = []

    async def sleep(self, seconds):
        await asyncio.sleep(0.001)
        self.clock.step(seconds)

    async def take(self, peer):
        await self.turns.wait(peer)
        self.given.append((peer, self.clock() - 100.0))

    async def take_all(self, peers):
        await asyncio.gather(*map(self.take, peers))
        return self.given


async def test_a_quarter_of_a_second_of_them_begins_at_once_and_the_others_in_their_time():
    given = await Scene(per_second=8.0).take_all("aaaaaa")
    assert [when for _, when in given] == pytest.approx([0.0, 0.0, 0.0, 0.125, 0.25, 0.375])


async def test_a_handshake_that_costs_more_takes_the_time_of_several():
    given = await Scene(per_second=8.0, cost=lambda: 4.0).take_all("aaa")
    assert [when for _, when in given] == pytest.approx([0.0, AHEAD_SECONDS, AHEAD_SECONDS + 0.5])


async def test_peers_take_turns_however_many_connections_each_has():
    given = await Scene().take_all("aaaaabbc")
    assert "".join(peer for peer, _ in given) == "abcabaaa"


@pytest.mark.parametrize(("ahead", "order"), [(False, [0, 1, 2, 3]), (True, [0, 3, 2, 1])])
async def test_of_one_peer_the_oldest_is_first_and_what_goes_ahead_the_newest(ahead, order):
    turns = Scene()
    waiting = []
    for number in range(4):
        waiting.append(asyncio.create_task(turns.turns.wait("a", ahead=ahead)))
        waiting[-1].add_done_callback(lambda _, number=number: turns.given.append(number))
        if number == 0:
            await waiting[0]
    await asyncio.gather(*waiting)
    assert turns.given == order


async def test_who_comes_later_waits_for_one_of_each_other_peer():
    turns = Scene()
    flood = [asyncio.create_task(turns.take("flood")) for _ in range(30)]
    await asyncio.sleep(0)
    await turns.take("kubelet")
    assert len(turns.given) <= 4
    await asyncio.gather(*flood)


async def test_who_gives_up_takes_no_turn_and_nobody_waits_for_it():
    turns = Scene(per_second=1.0)
    await turns.take("a")
    leaving = [asyncio.create_task(turns.take(peer)) for peer in "aab"]
    await asyncio.sleep(0)
    for task in leaving:
        task.cancel()
    await asyncio.gather(*leaving, return_exceptions=True)
    before = turns.clock()
    await turns.take("c")
    assert [peer for peer, _ in turns.given] == ["a", "c"]
    assert turns.clock() - before <= 1.0


async def test_who_is_cancelled_at_the_moment_of_its_turn_takes_none():
    turns = Scene(per_second=1.0)
    leaving = asyncio.create_task(turns.take("a"))
    await asyncio.sleep(0)
    # Its wait has not run again when the turn is given.
    leaving.cancel()
    await asyncio.wait_for(turns.take("b"), 30)
    assert (turns.given, leaving.cancelled()) == ([("b", 0.0)], True)


async def test_who_comes_when_the_last_one_leaves_is_given_a_turn():
    turns = Scene(per_second=1.0)
    await turns.take("a")
    leaving = asyncio.create_task(turns.take("b"))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await turns.take("c")
    assert [peer for peer, _ in turns.given] == ["a", "c"]


async def test_time_without_handshakes_is_not_saved_up():
    turns = Scene(per_second=8.0)
    turns.clock.step(60.0)
    given = await turns.take_all("aaaaaa")
    assert given[-1][1] == pytest.approx(60.375)
