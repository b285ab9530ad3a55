"""bayplan preempts in every recorded case as kube-scheduler did."""

import os
from functools import cache
from pathlib import Path

import pytest
from tests.oracle.case import DATA
from tests.oracle.preemption_case import FILE, read_preemptions
from tests.oracle.preemption_replay import Replay
from tests.oracle.replay import load

# A folder of fresh recordings takes the place of the stored ones, as `make oracle` asks.
_PATH = Path(os.environ.get("BAYPLAN_ORACLE_DATA") or DATA) / FILE
_DOCUMENTS, _STORED = read_preemptions(_PATH) if _PATH.exists() else ({}, ())
_CASES = {case.name: case for case in _STORED}
_configuration = cache(lambda name: load(_DOCUMENTS[name]))


@pytest.mark.parametrize("name", _CASES)
def test_a_recorded_preemptor_gets_the_node_and_the_victims_that_kube_scheduler_chose(name):
    case = _CASES[name]
    found = Replay(case, _configuration(case.configuration)).run()
    lines = [f"{pod}: {line}" for pod, lines in found for line in lines]
    assert not lines, "\n".join([f"{name}, configuration {case.configuration}:", *lines])
