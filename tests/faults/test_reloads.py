"""A configuration that changes in the middle of random sequences of faults breaks no promise."""

import random

import pytest
from tests.faults.sequences import failure
from tests.faults.steps import Step, draw

SEEDS = range(1, 31)


def with_reloads(seed: int) -> list[Step]:
    """The steps of a seed, with a change of the configuration after every third."""
    rng = random.Random(seed)
    steps = []
    for step in draw(seed):
        steps.append(step)
        if rng.random() < 1 / 3:
            steps.append(Step("reconfigure", {"spreads": rng.random() < 0.5}))
    return steps


@pytest.mark.parametrize("seed", SEEDS)
def test_sequences_of_faults_and_reloads_keep_every_promise(seed):
    steps = with_reloads(seed)
    assert any(step.what == "reconfigure" for step in steps)
    assert failure(seed, steps) == []
