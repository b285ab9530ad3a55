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


def test_enough_is_recorded_of_everything_that_preemption_looks_at():
    if _PATH.parent != DATA:
        # A fresh recording may be of any size.
        return
    decided = [
        (case, pod, decision)
        for case in _CASES.values()
        for pod, decision in zip(case.scene.incoming, case.decisions, strict=True)
    ]
    preempted = [(case, pod, decision) for case, pod, decision in decided if decision.nominated]
    messages = " ".join(decision.message or "" for _, _, decision in decided)
    assert len({case.name for case, _, _ in preempted}) >= 200
    assert {case.configuration for case, _, _ in preempted} == {"all-nodes", "defaults", "few-nodes", "a-third"}
    assert sum(len(decision.candidates) for _, _, decision in decided) >= 1000
    assert sum(bool(decision.checked) for _, _, decision in decided) >= 50
    assert max(len(decision.candidates[decision.nominated]) for _, _, decision in preempted) >= 5
    assert all(any(field in pod["spec"] for _, pod, _ in preempted) for field in _FIELDS)
    assert all(text in messages for text in _TEXTS)


_FIELDS = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "volumes")
_TEXTS = (
    "No preemption victims found for incoming pod",
    "Preemption is not helpful for scheduling",
    "not eligible due to preemptionPolicy=Never.",
    "not eligible due to a terminating pod on the nominated node.",
)
