"""bayplan's metrics beside those that the real kube-scheduler exported: record.py."""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from tests.server.record import DATA, described
from tests.server.samples import observed

DOCUMENT = Path(__file__).parents[2] / "docs/metrics.md"


@dataclass(frozen=True)
class Described:
    """A metric as record.py writes it."""

    name: str
    kind: str
    stability: str
    labels: frozenset[str]
    bounds: tuple[float, ...]


def read(lines):
    found = {}
    for line in lines:
        name, kind, stability, labels, bounds = line.split()
        numbers = () if bounds == "-" else tuple(map(float, bounds.split(",")))
        named = frozenset() if labels == "-" else frozenset(labels.split(","))
        found[name] = Described(name, kind, stability, named, numbers)
    return found


THEIRS = read(DATA.read_text().splitlines())
OURS = read(described(generate_latest(observed().registry).decode()))

# Nothing of what these count was recorded, or they go with the gate GenericWorkload, but count for single pods as well
# (upstream: pkg/scheduler/metrics, plugins/volumebinding/metrics, resourceclaim/metrics).
NOT_RECORDED = {
    "dynamic_resource_allocation_resourceclaim_creates_total",
    "leader_election_slowpath_total",
    "scheduler_dra_bindingconditions_allocations_total",
    "scheduler_dra_bindingconditions_wait_duration_seconds",
    "scheduler_permit_wait_duration_seconds",
    "scheduler_preemption_evaluation_duration_seconds",
    "scheduler_preemption_execution_duration_seconds",
    "scheduler_preemption_pdb_violations_total",
    "scheduler_volume_scheduling_stage_error_total",
    "scheduler_podgroup_schedule_attempts_total",
    "scheduler_podgroup_scheduling_attempt_duration_seconds",
}
# Python's, which Go programs have none of.
PYTHON = re.compile(r"python_")


def left_out() -> list[str]:
    """The names and patterns of the document's table of what is not there."""
    section = DOCUMENT.read_text().partition("## What kube-scheduler has and bayplan has not")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| .* \| (`.*`) \|$", section, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


@pytest.mark.parametrize("name", sorted(THEIRS.keys() & OURS.keys()))
def test_a_metric_is_the_one_of_kube_scheduler(name):
    theirs, ours = THEIRS[name], OURS[name]
    assert (ours.kind, ours.labels) == (theirs.kind, theirs.labels)
    assert ours.bounds == pytest.approx(theirs.bounds)


def test_every_metric_of_kube_scheduler_is_here_or_has_a_reason_why_not():
    missing = {name for name in THEIRS if not any(fnmatchcase(name, pattern) for pattern in left_out())} - OURS.keys()
    assert missing == set()


def test_no_reason_is_given_for_what_is_here_or_never_was():
    for pattern in left_out():
        matching = {name for name in THEIRS if fnmatchcase(name, pattern)}
        assert matching, pattern
        assert not matching & OURS.keys(), pattern


def test_what_stays_stable_or_beta_is_left_out_only_where_it_is_of_a_library():
    stable = {name for name, each in THEIRS.items() if each.stability in {"STABLE", "BETA"}} - OURS.keys()
    assert {name.split("_")[0] for name in stable} <= {"apiserver", "disabled", "hidden", "registered", "workqueue"}


def test_what_has_no_counterpart_says_that_it_is_ours():
    others = {name for name in OURS.keys() - THEIRS.keys() if not PYTHON.match(name)}
    assert {name for name in others if not name.startswith("bayplan_")} == NOT_RECORDED
