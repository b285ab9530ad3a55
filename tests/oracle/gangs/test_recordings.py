"""The recordings are of the Kubernetes that is built and of the scenarios as they are, and show every rule."""

import pytest
from e2e.controlplane.kubernetes_version import kubernetes_version
from tests.oracle.gangs.catalogue import ROUND, families
from tests.oracle.gangs.comparison import compare
from tests.oracle.gangs.parts import gang, rooms, scenario
from tests.oracle.gangs.recording import DATA, GroupState, Outcome, PodState, Recorded, Recording, read, write
from tests.oracle.gangs.scenario import Rest

FAMILIES = families(1)
RECORDINGS = {name: read(DATA / f"{name}.json") for name in FAMILIES}
SCENARIOS = {each.name: (family, each) for family in FAMILIES.values() for each in family.scenarios}


def _texts(*names: str) -> set[str]:
    return {
        state.message
        for name in names
        for recorded in RECORDINGS[name].scenarios.values()
        for run in recorded.runs
        for outcome in run
        for state in (*outcome.pods.values(), *outcome.groups.values())
    }


TEXTS = _texts(*(family.name for family in ROUND))
TOPOLOGY_TEXTS = _texts("topology")


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_recorded_on_the_kubernetes_that_is_built(name):
    assert RECORDINGS[name].kubernetes == kubernetes_version()
    assert set(RECORDINGS[name].scenarios) == {each.name for each in FAMILIES[name].scenarios}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_recording_is_of_the_scenario_as_it_is_written(name):
    family, found = SCENARIOS[name]
    recorded = RECORDINGS[family.name].scenarios[name]
    assert recorded.digest == found.digest(), f"record it anew: --family {family.name}"
    assert {len(run) for run in recorded.runs} == {sum(isinstance(step, Rest) for step in found.steps)}


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_recorded_run_agrees_with_its_recording(name):
    family, found = SCENARIOS[name]
    runs = RECORDINGS[family.name].scenarios[name].runs
    for run in runs:
        # A condition that went back is the one thing that is recorded and not wanted.
        lines = [line for line in compare(found, runs, run).lines if " group " not in line]
        assert not lines


def test_names_tell_scenarios_apart():
    assert len(SCENARIOS) == sum(len(family.scenarios) for family in FAMILIES.values())
    assert len(SCENARIOS) >= 150


@pytest.mark.parametrize(
    "text",
    [
        "cannot be satisfied",
        "pod group is unschedulable, minCount",
        "No preemption victims found for incoming preemptor",
        "should have the same .spec.schedulerName set",
        "should have the same priority as the pod group's priority",
        "should have the same preemption policy",
        "PodGroupPostFilter plugins: not found",
        "not eligible due to preemptionPolicy=Never.",
        "Insufficient cpu",
        "Too many pods",
        "didn't have free ports",
        "didn't match pod anti-affinity rules",
        "didn't match pod topology spread constraints",
    ],
)
def test_every_text_of_a_round_comes_up_somewhere(text):
    assert any(text in each for each in TEXTS)


@pytest.mark.parametrize("text", ["placements are available", "no feasible placements found", "more than 1 domain"])
def test_every_text_of_topologies_comes_up_somewhere(text):
    assert any(text in each for each in TOPOLOGY_TEXTS)


def test_kube_scheduler_binds_no_gang_in_part_where_nobody_is_evicted_and_nothing_goes():
    assert RECORDINGS["two-gangs"].scenarios
    for recorded in RECORDINGS["two-gangs"].scenarios.values():
        for run in recorded.runs:
            for outcome in run:
                bound = {name for name, pod in outcome.pods.items() if pod.node}
                assert not {"a1", "b1", "c1"} & bound or any({f"{each}1", f"{each}2"} <= bound for each in "abc")


def test_what_is_written_is_read_back(tmp_path):
    run = (Outcome({"a1": PodState("n1", events=("x",))}, {"a": GroupState("True", "Scheduled", "", True)}),)
    of = scenario("one", "one gang", rooms(1), gang("a", 1, 1))
    recording = Recording("1.2.3", {"one": Recorded.of(of, [run, run])})
    write(tmp_path / "one.json", recording)
    assert read(tmp_path / "one.json") == recording
    assert recording.scenarios["one"].runs == (run,)


def test_dice_of_a_seed_make_the_same_scenarios_each_time_and_other_seeds_others():
    of = [family.scenarios[0].digest() for family in (families(5)["at-random"], families(5)["at-random"])]
    assert of[0] == of[1]
    assert families(6)["at-random"].scenarios[0].digest() != of[0]
