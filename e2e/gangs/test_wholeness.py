"""Stretches in which a gang ran in part are found in the record."""

import pytest

from e2e.controlplane.recorder import PodEvent
from e2e.gangs.wholeness import Gang, Part, longest, parts

GANGS = {"a": Gang(2, frozenset({"n/a1", "n/a2", "n/a3"})), "b": Gang(1, frozenset({"n/b1"}))}


def event(name: str, arrived: float, *, node: str = "n1", kind: str = "MODIFIED") -> PodEvent:
    return PodEvent(kind, 1, name, f"n/{name}", node, "", deleting=False, arrived=arrived)


def test_a_gang_that_is_bound_in_one_go_ran_in_part_for_as_long_as_that_took() -> None:
    assert parts([event("a1", 1.0), event("a2", 1.5), event("a3", 2.0)], GANGS, 9.0) == [Part("a", 1.0, 1.5, 1)]


def test_a_gang_that_never_gets_its_least_runs_in_part_to_the_end() -> None:
    found = parts([event("a1", 1.0), event("b1", 2.0)], GANGS, 9.0)
    assert found == [Part("a", 1.0, 9.0, 1)]
    assert longest(found) == 8.0


def test_pods_without_a_node_and_of_no_gang_do_not_count() -> None:
    assert parts([event("a1", 1.0, node=""), event("x", 1.0)], GANGS, 9.0) == []
    assert longest([]) == 0.0


def test_a_gang_that_loses_a_member_runs_in_part_until_another_comes() -> None:
    events = [event("a1", 1.0), event("a2", 1.0), event("a1", 3.0, kind="DELETED"), event("a3", 5.0)]
    assert [part.seconds for part in parts(events, GANGS, 9.0)] == pytest.approx([0.0, 2.0])


def test_a_gang_that_goes_whole_leaves_nothing_in_part_behind() -> None:
    events = [event(name, 1.0) for name in ("a1", "a2")]
    events += [event("a1", 2.0, kind="DELETED"), event("a2", 2.5, kind="DELETED")]
    assert [part.seconds for part in parts(events, GANGS, 9.0)] == pytest.approx([0.0, 0.5])
