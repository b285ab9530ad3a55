import lzma
from functools import cache

import msgspec
import pytest
from tests.devices.judge import DATA, bayplan_answers

PARTS = 8


@cache
def recorded():
    """Read for the first test that asks, as each process that runs tests collects all of them."""
    return [msgspec.json.decode(line) for line in lzma.decompress(DATA.read_bytes()).splitlines()]


@pytest.mark.parametrize("part", range(PARTS))
def test_recorded_cases_are_answered_as_kube_schedulers_allocator_answers_them(part):
    different = [(case, answer) for case, answer in recorded()[part::PARTS] if bayplan_answers(case) != answer]
    assert different == []


def test_there_are_many_cases_of_each_kind():
    kinds = [next(iter(answer)) for _, answer in recorded()]
    assert len(recorded()) >= 2000
    assert all(kinds.count(kind) > 200 for kind in ("allocations", "error", "refusal"))
