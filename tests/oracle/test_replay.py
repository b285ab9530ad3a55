"""bayplan decides every recorded case as kube-scheduler did: nodes, scores and messages, nominations and victims."""

import pytest
from tests.oracle.case import RECORDINGS, recorded_cases
from tests.oracle.extenders import address_of_extenders
from tests.oracle.families.family import ALL_FAMILIES
from tests.oracle.replay import Replay

_CASES = {recorded.case.name: recorded for recorded in recorded_cases(RECORDINGS, ALL_FAMILIES)}


@pytest.mark.parametrize("name", _CASES)
def test_a_recorded_case_is_decided_as_kube_scheduler_did(name):
    recorded = _CASES[name]
    with address_of_extenders(recorded.document) as address:
        lines = list(Replay(recorded, address).differences())
    assert not lines, "\n".join([f"{name}, configuration {recorded.case.configuration}:", *lines])
