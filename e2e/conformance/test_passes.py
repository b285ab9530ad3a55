"""What a pass of the suite is made of, and what is said of it."""

import dataclasses
from pathlib import Path

import pytest
import yaml

from e2e.conformance.cluster import NODES, agents, stages_without, suite_node
from e2e.conformance.configurations import CONFIGURATIONS, DEFAULT, scheduler_configuration
from e2e.conformance.oversight import bad_bindings, refusals
from e2e.conformance.report import Pass, table
from e2e.conformance.suite import PROGRAM, Begins, Chosen, Verdict, read_progress, run_suite
from e2e.controlplane.audit import AuditEvent
from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.build import MODULE, cache_key
from e2e.controlplane.commands import KWOK_STAGES
from e2e.controlplane.recorder import PodEvent

NAME = "[sig-scheduling] SchedulerPredicates validates a | b [Conformance] [Serial]"
PASSED = Verdict(NAME, "passed", 3.7, conformance=True)
FAILED = Verdict("[sig-scheduling] LimitRange lists", "failed", 300.0, conformance=False, failure="timed out\nx.go:7")


def event(key: str, node: str, uid: str = "1") -> PodEvent:
    return PodEvent("MODIFIED", 1, uid, key, node, "Pending", deleting=False, arrived=0.0)


def test_progress_says_how_many_specs_run_what_begins_and_what_ended_how() -> None:
    labels = ["sig-scheduling", "Serial", "Conformance"]
    assert read_progress({"specs": 28}) == Chosen(28)
    assert read_progress({}) == Chosen(0)
    assert read_progress({"name": NAME, "labels": labels}) == Begins(NAME)
    assert read_progress({"name": NAME, "labels": labels, "state": "passed", "seconds": 3.7}) == PASSED


def program(path: Path, script: str) -> Path:
    """A program in the place of the suite; in its script `$progress` is the file that it has to write."""
    path.write_text(
        f'#!/bin/sh\nfor each; do case "$each" in --progress=*) progress="${{each#*=}}";; esac; done\n{script}\n'
    )
    path.chmod(0o755)
    return path


def test_the_suite_is_followed_while_it_runs_and_until_its_end(tmp_path: Path) -> None:
    script = """\
echo '{"specs": 2}' >> "$progress"
printf '{"name": "a", "labels"' >> "$progress"
until [ -e read ]; do sleep 0.05; done
echo ': []}' >> "$progress"
echo '{"name": "a", "labels": [], "state": "failed", "failure": "why"}' >> "$progress"
exit 1"""
    steps = run_suite(program(tmp_path / "suite", script), tmp_path / "admin", tmp_path, nodes=4, seed=1, focus=None)
    assert next(steps) == Chosen(2)
    (tmp_path / "read").touch()
    assert list(steps) == [Begins("a"), Verdict("a", "failed", 0.0, conformance=False, failure="why")]


def test_a_suite_that_ran_nothing_is_an_error_with_the_end_of_its_log(tmp_path: Path) -> None:
    broken = program(tmp_path / "suite", "echo flag provided but not defined >&2; exit 2")
    with pytest.raises(RuntimeError, match="exited with 2:\nflag provided but not defined"):
        list(run_suite(broken, tmp_path / "admin", tmp_path, nodes=4, seed=1, focus=None))


def test_a_pass_is_clean_when_every_chosen_spec_passed() -> None:
    assert Pass("bayplan", 1, 1, (PASSED,)).clean
    assert not Pass("bayplan", 1, 2, (PASSED,)).clean
    assert not Pass("bayplan", 1, 2, (PASSED, FAILED)).clean
    assert not Pass("bayplan", 1, 0, ()).clean
    assert not Pass("bayplan", 1, 1, (PASSED,), ("exited with 1",)).clean


def test_a_spec_that_skipped_itself_has_not_passed() -> None:
    assert not dataclasses.replace(PASSED, state="skipped").passed


def test_the_table_has_a_row_for_each_spec_and_a_column_for_each_pass() -> None:
    passes = [
        Pass("bayplan, default", 1, 2, (PASSED, FAILED)),
        Pass("bayplan, default", 2, 2, (PASSED,), ("bayplan exited with 1",)),
    ]
    assert (
        table(passes)
        == """\
| spec | C | bayplan, default, seed 1 | bayplan, default, seed 2 |
| --- | --- | --- | --- |
| LimitRange lists |  | failed | not run |
| SchedulerPredicates validates a \\| b | C | 4 s | 4 s |
| passed |  | 1 of 2 | 1 of 2 |

bayplan, default, seed 1: [sig-scheduling] LimitRange lists: failed
timed out
x.go:7

bayplan, default, seed 2: bayplan exited with 1"""
    )


def test_a_pod_bound_once_is_no_problem_and_neither_is_one_that_waits() -> None:
    assert bad_bindings([event("x/a", ""), event("x/a", "node-1"), event("x/a", "node-1"), event("x/b", "")]) == []


def test_a_pod_that_was_seen_on_two_nodes_is_named() -> None:
    events = [event("x/a", "node-1"), event("x/a", "node-2"), event("x/b", "node-1"), event("x/b", "node-2", uid="2")]
    assert bad_bindings(events) == ["x/a was on node-1 and node-2"]


def test_the_pod_whose_host_port_is_taken_must_not_have_a_node() -> None:
    events = [event("sched-pred-7/pod4", "node-1"), event("sched-pred-7/pod5", ""), event("other/pod5", "node-1")]
    assert bad_bindings(events) == []
    assert bad_bindings([event("sched-pred-7/pod5", "node-1")]) == [
        "sched-pred-7/pod5 was bound to node-1, where its host port is taken"
    ]


def test_each_kind_of_request_that_was_forbidden_is_named_once() -> None:
    def request(verb: str, *, forbidden: bool) -> AuditEvent:
        return AuditEvent("bayplan", verb, "pods/status", "x", "a", 403, "/", forbidden, {})

    requests = [request("patch", forbidden=forbidden) for forbidden in (True, False, True)]
    requests.append(request("update", forbidden=False))
    assert refusals(requests) == ["bayplan may not patch pods/status"]


def test_kwok_plays_all_but_the_end_of_pods() -> None:
    def names(text: str) -> list[str]:
        return [stage["metadata"]["name"] for stage in yaml.safe_load_all(text)]

    stages = KWOK_STAGES.read_text()
    assert [*names(stages_without(stages, "pod-ends")), "pod-ends"] == names(stages)
    with pytest.raises(ValueError, match="kwok plays no stage 'pod-stops'"):
        stages_without(stages, "pod-stops")


def test_nodes_are_spread_evenly_over_two_zones_and_have_addresses_of_their_own() -> None:
    nodes = [suite_node(number) for number in range(NODES)]
    zones = [found["metadata"]["labels"]["topology.kubernetes.io/zone"] for found in nodes]
    addresses = {found["status"]["addresses"][0]["address"] for found in nodes}
    assert sorted(zones) == ["zone-a"] * 2 + ["zone-b"] * 2
    assert len(addresses) == NODES
    assert not any(address.startswith("127.") for address in addresses)


def test_what_runs_on_every_node_is_placed_by_the_scheduler_under_test() -> None:
    spec = agents("kube-proxy")["spec"]["template"]["spec"]
    assert "schedulerName" not in spec


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_every_configuration_claims_the_pods_that_name_no_scheduler_and_a_lease(name: str) -> None:
    document = scheduler_configuration(name)
    (profile,) = document["profiles"]
    assert profile["schedulerName"] == "default-scheduler"
    assert document["leaderElection"]["leaderElect"]


def test_the_report_shows_the_default_configuration_as_it_is_run() -> None:
    report = (REPOSITORY / "docs" / "conformance.md").read_text()
    shown = report.partition("```yaml\n")[2].partition("```")[0]
    assert yaml.safe_load(shown) == scheduler_configuration(DEFAULT)


def test_a_changed_source_makes_another_build_of_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("go.mod", "go.sum", *PROGRAM.sources):
        copy = tmp_path / name
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes((MODULE / name).read_bytes())
    monkeypatch.setattr("e2e.controlplane.build.MODULE", tmp_path)
    program, plane = cache_key(PROGRAM), cache_key()
    (tmp_path / PROGRAM.sources[0]).write_text("package main\n")
    assert cache_key(PROGRAM) != program
    assert cache_key() == plane
