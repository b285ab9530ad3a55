import os

import msgspec
import pytest
from msgspec.structs import replace
from tests.replay.traces import make_trace

from bayplan.config.errors import InputError
from bayplan.config.load import default_configuration
from bayplan.config.types import ScoringStrategyType
from bayplan.replay.replay import PoolSettings
from bayplan.replay.runs import Run, TraceSource, WorkerDiedError, digest_of, keep_result, outcomes, results_in, sources
from bayplan.replay.trace import trace_lines
from bayplan.simulate.strategy_comparison import strategy_configuration

CONFIGURATIONS = {
    digest_of(each): each
    for each in (default_configuration(), strategy_configuration(ScoringStrategyType.LEAST_ALLOCATED))
}


@pytest.fixture
def trace_file(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b"".join(trace_lines(make_trace([(0.0, 100.0), (10.0, 50.0)]))))
    return path


def runs_of(source):
    return [Run(source, digest, PoolSettings()) for digest in CONFIGURATIONS]


def test_runs_in_several_processes_give_what_each_gives_by_itself(trace_file):
    (source,) = sources(str(trace_file), seeds=1, hours=1.0, scale=1.0)
    runs = runs_of(source)
    together = dict(outcomes(runs, CONFIGURATIONS))
    assert set(together) == set(runs)
    for run in runs:
        ((_, alone),) = outcomes([run], CONFIGURATIONS)
        assert together[run].node_hours == alone.node_hours > 0


def test_results_are_found_again_in_their_file(trace_file, tmp_path):
    (source,) = sources(str(trace_file), seeds=1, hours=1.0, scale=1.0)
    path = tmp_path / "results.jsonl"
    assert results_in(path) == {}
    done = dict(outcomes(runs_of(source), CONFIGURATIONS))
    for run, outcome in done.items():
        keep_result(path, run, outcome)
    assert results_in(path) == {run.key: outcome for run, outcome in done.items()}


def test_a_trace_counts_by_its_content_and_not_by_its_name(trace_file, tmp_path):
    other = tmp_path / "renamed.jsonl"
    other.write_bytes(trace_file.read_bytes())
    one, two = (sources(str(path), seeds=1, hours=1.0, scale=1.0)[0] for path in (trace_file, other))
    assert [each.key for each in runs_of(one)] == [each.key for each in runs_of(two)]


def test_results_of_another_version_do_not_count_and_may_say_other_things(trace_file, tmp_path):
    (source,) = sources(str(trace_file), seeds=1, hours=1.0, scale=1.0)
    path = tmp_path / "results.jsonl"
    run = replace(runs_of(source)[0], version="0.0.1")
    path.write_bytes(msgspec.json.encode({"run": run, "outcome": {"of": "another kind"}}) + b"\n")
    assert results_in(path) == {}


def test_a_trace_that_changed_is_another_run(trace_file):
    (before,) = sources(str(trace_file), seeds=1, hours=1.0, scale=1.0)
    trace_file.write_bytes(b"".join(trace_lines(make_trace([(0.0, 100.0)]))))
    (after,) = sources(str(trace_file), seeds=1, hours=1.0, scale=1.0)
    assert before != after


def test_a_trace_that_changes_between_runs_ends_them(trace_file):
    (source,) = sources(str(trace_file), seeds=1, hours=1.0, scale=1.0)
    assert sources("openb", seeds=1, hours=0.1, scale=0.001)[0].trace.header.seconds == 360
    trace_file.write_bytes(b"".join(trace_lines(make_trace([(0.0, 100.0)]))))
    with pytest.raises(InputError, match=r"trace\.jsonl: is no more what it was when the replay began"):
        _ = source.trace


def test_a_generator_has_a_trace_for_each_seed():
    assert sources("openb", seeds=2, hours=3.0, scale=0.5) == [
        TraceSource("openb", seed=seed, hours=3.0, scale=0.5) for seed in (1, 2)
    ]


@pytest.mark.parametrize("left", [1, 3, 40])
def test_a_last_line_that_was_torn_is_cut_off_and_its_run_counts_as_not_done(trace_file, tmp_path, left):
    (source,) = sources(str(trace_file), seeds=1, hours=1.0, scale=1.0)
    path = tmp_path / "results.jsonl"
    (first, outcome), second = outcomes(runs_of(source), CONFIGURATIONS)
    keep_result(path, first, outcome)
    whole = path.read_bytes()
    keep_result(path, *second)
    path.write_bytes(whole + path.read_bytes()[len(whole) :][:left])
    assert results_in(path) == {first.key: outcome}
    assert path.read_bytes() == whole
    keep_result(path, *second)
    assert len(results_in(path)) == 2


def test_the_end_of_a_file_of_something_else_is_left_as_it_is(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(InputError, match=r"notes\.txt:1: "):
        results_in(path)
    assert path.read_text() == "mine"


def test_a_line_that_is_no_result_is_told_with_its_number(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text('{"run": 1}\n')
    with pytest.raises(InputError, match=r"results\.jsonl:1: run: Invalid value: integer: must be an object"):
        results_in(path)


class Deadly:
    """Ends the process that it is sent to."""

    def __reduce__(self):
        return os._exit, (1,)


def test_a_worker_that_ends_is_told_in_words(trace_file):
    (source,) = sources(str(trace_file), seeds=1, hours=1.0, scale=1.0)
    runs = runs_of(source)
    with pytest.raises(WorkerDiedError, match="a process that replayed was ended, perhaps for want of memory"):
        dict(outcomes(runs, dict.fromkeys(CONFIGURATIONS, Deadly())))
