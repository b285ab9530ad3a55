"""bayplan decides every recorded case as kube-scheduler did."""

import os
from functools import cache
from pathlib import Path

import pytest
from tests.oracle.case import DATA, Case, read_cases
from tests.oracle.replay import differences, load, replay

from bayplan.config.types import SchedulerConfiguration

# A folder of fresh recordings takes the place of the stored ones, as `make oracle` asks.
_DATA = Path(os.environ.get("BAYPLAN_ORACLE_DATA") or DATA)


def _stored() -> dict[str, tuple[str, Case]]:
    found: dict[str, tuple[str, Case]] = {}
    for path in sorted(_DATA.glob("*.jsonl.gz")):
        configurations, cases = read_cases(path)
        _DOCUMENTS[path.name] = configurations
        found |= {case.name: (path.name, case) for case in cases}
    return found


_DOCUMENTS: dict[str, dict[str, dict[str, object]]] = {}
_CASES = _stored()


@cache
def _configuration(file: str, name: str) -> SchedulerConfiguration:
    return load(_DOCUMENTS[file][name])


@pytest.mark.parametrize("name", _CASES)
def test_a_recorded_case_is_decided_as_kube_scheduler_did(name):
    file, case = _CASES[name]
    lines = []
    for (pod, found), expected in zip(
        replay(case, _configuration(file, case.configuration)), case.decisions, strict=True
    ):
        lines += [f"{pod}: {line}" for line in differences(expected, found)]
    assert not lines, "\n".join([f"{name}, configuration {case.configuration}:", *lines])
