import lzma

import msgspec
import pytest
from tests.devices.judge import DATA, bayplan_answers

RECORDED = [msgspec.json.decode(line) for line in lzma.decompress(DATA.read_bytes()).splitlines()]
PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_recorded_cases_are_answered_as_kube_schedulers_allocator_answers_them(part):
    different = [(case, answer) for case, answer in RECORDED[part::PARTS] if bayplan_answers(case) != answer]
    assert different == []


def test_there_are_many_cases_of_each_kind():
    kinds = [next(iter(answer)) for _, answer in RECORDED]
    assert len(RECORDED) >= 2000
    assert all(kinds.count(kind) > 200 for kind in ("allocations", "error", "refusal"))
