"""Gangs are whole a minute after the last of random faults, and none of their pods is bound twice."""

import pytest
from tests.distributions_searched_once import distributions_searched_once
from tests.faults.gangs import draw, outcome
from tests.faults.virtual_time import run

from bayplan.scheduler.group_attempts import GroupAttempt
from bayplan.scheduler.pod_group_round import PodGroupRound

SEEDS = 24
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_gangs_are_whole_when_the_faults_are_over(part):
    with distributions_searched_once():
        broken = {seed: found for seed in range(part, SEEDS, PARTS) if (found := run(outcome(seed, draw(seed))))}
    assert broken == {}


def test_a_scheduler_that_starts_gangs_in_part_is_found_out(monkeypatch):
    monkeypatch.setattr(PodGroupRound, "_infeasible", lambda self, remaining: "")
    monkeypatch.setattr(GroupAttempt, "_without_those_gone", lambda self, result: result)
    assert any("runs in part" in each for seed in range(10) for each in run(outcome(seed, draw(seed))))
