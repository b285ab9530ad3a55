"""bayplan decides every recorded case as kube-scheduler did."""

import pytest
from tests.oracle.case import RECORDINGS, recorded_cases
from tests.oracle.families.family import FAMILIES
from tests.oracle.replay import differences, load, replay

_CASES = {recorded.case.name: recorded for recorded in recorded_cases(RECORDINGS, FAMILIES)}


@pytest.mark.parametrize("name", _CASES)
def test_a_recorded_case_is_decided_as_kube_scheduler_did(name):
    recorded = _CASES[name]
    case = recorded.case
    found = replay(case, load(recorded.document))
    lines = [
        f"{pod}: {line}"
        for (pod, decision), expected in zip(found, case.decisions, strict=True)
        for line in differences(expected, decision)
    ]
    assert not lines, "\n".join([f"{name}, configuration {case.configuration}:", *lines])
