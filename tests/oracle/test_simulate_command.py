"""`bayplan simulate --explain -o json` tells what kube-scheduler logged."""

import pytest
from tests.oracle.case import RECORDINGS, Recorded, recorded_cases
from tests.oracle.comparison import differences
from tests.oracle.families.family import ALL_FAMILIES
from tests.oracle.simulation import cluster_file, decision_of, simulate

_A_FAMILY = 8


def _sample() -> dict[str, Recorded]:
    """Some cases of every family, far apart."""
    found = {}
    for family in (name for name, family in ALL_FAMILIES.items() if family.simulated):
        cases = list(recorded_cases(RECORDINGS, [family]))
        found |= {each.case.name: each for each in cases[:: max(1, len(cases) // _A_FAMILY)]}
    return found


_SAMPLE = _sample()


def scenes_of(recorded: Recorded) -> list[int]:
    """Which incoming pods to try: the first one, and the last if a file can tell what happened before.

    It cannot tell which claims are taken, who waits for victims, and where a search for nodes goes on.
    """
    case = recorded.case
    untold = any(each["kind"] == "PersistentVolumeClaim" for each in case.scene.objects) or any(
        decision.nominated for decision in case.decisions[:-1]
    )
    return [0] if untold or ALL_FAMILIES[recorded.family].afresh else sorted({0, len(case.decisions) - 1})


@pytest.mark.parametrize("name", _SAMPLE)
def test_a_simulation_explains_a_recorded_case_in_kube_schedulers_numbers(name, tmp_path):
    recorded = _SAMPLE[name]
    for chosen in scenes_of(recorded):
        cluster = cluster_file(recorded.case.scene, recorded.case.decisions[:chosen])
        (pod,) = simulate(recorded.document, cluster, tmp_path)["pods"]
        expected = recorded.case.decisions[chosen]
        found = decision_of(pod["attempts"][0])
        # The report says in words that a cycle failed, as events do.
        found.error = expected.error
        assert pod["name"] == recorded.case.scene.incoming[chosen]["metadata"]["name"]
        assert not differences(expected, found)
