import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.server.connection import Connections


def closed(connections, *peers):
    """Who has to go as one connection after the other comes, numbered from 0."""
    return [connections.add(peer, number) for number, peer in enumerate(peers)]


def test_the_oldest_of_a_peer_goes_when_it_has_too_many():
    assert closed(Connections(per_peer=2, total=9), "a", "b", "a", "a", "a") == [None, None, None, 0, 2]


def test_the_oldest_of_who_has_most_goes_when_there_are_too_many_in_all():
    assert closed(Connections(per_peer=9, total=4), "b", "a", "a", "a", "c", "d") == [None, None, None, None, 1, 2]


def test_among_peers_with_equally_many_the_first_one_goes():
    assert closed(Connections(per_peer=9, total=2), "a", "b", "c") == [None, None, 0]


def test_a_connection_that_ended_makes_room():
    connections = Connections(per_peer=1, total=9)
    connections.add("a", "first")
    connections.remove("a", "first")
    connections.remove("a", "first")
    assert connections.add("a", "second") is None
    assert len(connections) == 1


@pytest.mark.parametrize(("per_peer", "total"), [(3, 8), (8, 3), (1, 1)])
@given(steps=st.lists(st.tuples(st.sampled_from("abcdefghijkl"), st.booleans())))
def test_the_bounds_hold_and_the_newest_always_stays(per_peer, total, steps):
    connections = Connections(per_peer=per_peer, total=total)
    here = {}
    for number, (peer, comes) in enumerate(steps):
        if comes:
            here[number] = peer
            gone = connections.add(peer, number)
            assert gone != number
            if gone is not None:
                del here[gone]
        elif here:
            oldest = min(here)
            connections.remove(here.pop(oldest), oldest)
        assert len(connections) == len(here) <= total
        assert all(list(here.values()).count(each) <= per_peer for each in here.values())
