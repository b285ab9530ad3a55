"""bayplan's rounds come to what kube-scheduler made of every scenario: who runs, and what pods and groups are told."""

from dataclasses import replace

import pytest
from tests.oracle.gangs.catalogue import families
from tests.oracle.gangs.comparison import compare
from tests.oracle.gangs.recording import DATA, Outcome, Run, read
from tests.oracle.gangs.replay import Replay

_FAMILIES = families(1)
_OF_THE_QUEUE = {"the-held-one-goes", "at-random-1-18", "at-random-1-19", "at-random-1-20"}
"""In which a queue says who goes first after a back-off, or whom a deletion wakes: `python -m e2e.gangs` has one."""
_SCENARIOS = {
    each.name: (name, each)
    for name, family in _FAMILIES.items()
    for each in family.scenarios
    if each.name not in _OF_THE_QUEUE
}
_RECORDED = {name: read(DATA / f"{name}.json").scenarios for name in _FAMILIES}


def without_events(run: Run) -> Run:
    """The run as somebody sees it who does not look at Events, which tell of every round there was."""
    return tuple(
        Outcome({name: replace(pod, events=()) for name, pod in each.pods.items()}, each.groups) for each in run
    )


@pytest.mark.parametrize("name", _SCENARIOS)
def test_a_scenario_ends_as_kube_scheduler_ended_it(name):
    family, scenario = _SCENARIOS[name]
    recorded = tuple(map(without_events, _RECORDED[family][name].runs))
    verdict = compare(scenario, recorded, Replay(scenario, _FAMILIES[family].gates).play())
    assert not verdict.lines, "\n".join([scenario.about, *verdict.lines])
