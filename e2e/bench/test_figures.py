"""What the benchmark makes of its raw figures."""

import json
from pathlib import Path

import pytest

from e2e.bench.__main__ import main
from e2e.bench.contestants import ALL_NODES, BAYPLAN, SAMPLED, contestants
from e2e.bench.created import Created, read_created, write_created
from e2e.bench.made_up import drain, steady
from e2e.bench.meter import interpolate
from e2e.bench.report import document, ratios, table
from e2e.bench.results import Drain, Run, percentile
from e2e.bench.webhooks import Found, Times, misses
from e2e.bench.workload import PODS_PER_NODE, fewest_nodes, packed_node, scheduler_configuration
from e2e.bench.writes import parse_writes


def run(contestant: str, *, nodes: int = 500, repeat: int = 0, drained: Drain | None = None, problem: str = "") -> Run:
    return Run(contestant, nodes, repeat, drained, steady() if drained else None, problem)


@pytest.mark.parametrize(("theirs", "is_missed"), [(0.0, False), (10.0, False), (9.5, True)])
def test_more_calls_for_a_broken_namespace_are_a_miss_where_kube_scheduler_makes_any(
    theirs: float, is_missed: bool
) -> None:
    times = Times(p50=0.1, p99=0.1, longest=0.1, missing=0, pods=30)
    own, other = (
        Found(contestant, "scene", times, times, calls, in_flight=1, after=1.0, peak_rss=1, unreachable=0)
        for contestant, calls in ((BAYPLAN, 10.0), (SAMPLED, theirs))
    )
    assert misses(own, [own, other]) == ["more calls for the bad than kube-scheduler makes"] * is_missed


def test_rates_run_from_the_first_bind_to_the_last_and_to_the_last_event() -> None:
    figures = drain(pods=100, seconds=2.0, event_lag=2.0)
    assert figures.pods_per_second == pytest.approx(50)
    assert figures.pods_per_second_with_events == pytest.approx(25)


def test_cpu_per_pod_counts_the_start_and_the_events() -> None:
    figures = drain(pods=100)
    assert figures.cpu_ms_per_pod == pytest.approx(8)
    assert figures.cpu_ms_per_pod_from_first_bind == pytest.approx(3)
    assert figures.apiserver_cpu_ms_per_pod == pytest.approx(2.5)


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1.0), (0.5, 2.0), (0.75, 3.0), (0.99, 4.0), (1.0, 4.0)])
def test_a_percentile_is_a_measured_value(share: float, expected: float) -> None:
    assert percentile([4.0, 2.0, 3.0, 1.0], share) == expected


@pytest.mark.parametrize(("moment", "expected"), [(0.0, 1.0), (1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (9.0, 3.0)])
def test_cpu_between_two_samples_grows_evenly_and_outside_stays(moment: float, expected: float) -> None:
    assert interpolate([1.0, 3.0], [1.0, 3.0], moment) == expected


def test_a_ratio_compares_runs_of_the_same_repeat_and_takes_the_median() -> None:
    runs = [
        run(BAYPLAN, repeat=0, drained=drain(seconds=1.0)),
        run(SAMPLED, repeat=0, drained=drain(seconds=2.0)),
        run(BAYPLAN, repeat=1, drained=drain(seconds=1.0)),
        run(SAMPLED, repeat=1, drained=drain(seconds=4.0)),
        run(BAYPLAN, repeat=2, drained=drain(seconds=0.5)),
        run(SAMPLED, repeat=2, problem="it ended"),
    ]
    assert ratios(runs) == {500: {SAMPLED: pytest.approx(3), f"{SAMPLED}, Events included": pytest.approx(3)}}


def test_events_put_off_do_not_count_as_speed() -> None:
    runs = [run(BAYPLAN, drained=drain(seconds=1.0, event_lag=1.0)), run(ALL_NODES, drained=drain(seconds=2.0))]
    assert ratios(runs)[500] == {ALL_NODES: pytest.approx(2), f"{ALL_NODES}, Events included": pytest.approx(1)}


def test_the_table_has_a_row_for_each_contestant_and_says_what_failed() -> None:
    entrants = [contestants()[name] for name in (SAMPLED, BAYPLAN)]
    text = table([run(SAMPLED, drained=drain()), run(BAYPLAN, problem="it exited with 1")], entrants, pods=100)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    assert len({len(row) for row in rows}) == 1
    sampled, bayplan = rows[2], rows[3]
    assert (
        dict(zip(rows[0], sampled, strict=True)).items()
        >= {
            "pods/s": "100",
            "CPU ms/pod": "8.00",
            "peak MB": "90",
            "p50 ms": "11",
            "p99 ms": "42",
        }.items()
    )
    assert set(bayplan[2:]) == {"-"}
    assert "bayplan, 500 nodes, repeat 0: it exited with 1" in text


def test_the_document_holds_raw_and_derived_figures_and_is_json() -> None:
    text = json.dumps(document([run(BAYPLAN, drained=drain())], commit="abc"))
    found = json.loads(text)
    assert found["commit"] == "abc"
    assert found["runs"][0]["drain"]["pods_per_second"] == pytest.approx(100)
    assert found["runs"][0]["drain"]["first_bind"] == 2.0
    assert found["runs"][0]["steady"]["cpu_ms_per_pod"] == pytest.approx(3)


def test_what_the_loader_writes_is_read_back(tmp_path: Path) -> None:
    rows = [Created("pod-00000", "uid-0", 1.5, 2.25), Created("pod-00001", "uid-1", 3.0, 3.5)]
    write_created(tmp_path / "created.txt", rows)
    assert read_created(tmp_path / "created.txt") == rows


def test_the_known_answers_fill_one_node_after_the_other() -> None:
    assert packed_node(PODS_PER_NODE - 1) == "node-00000"
    assert packed_node(PODS_PER_NODE) == "node-00001"
    assert fewest_nodes(5000) == 46
    assert packed_node(4999) == "node-00045"


def test_schedulers_differ_in_the_percentage_alone() -> None:
    sampled, all_nodes = scheduler_configuration(None), scheduler_configuration(100)
    assert all_nodes["profiles"][0].pop("percentageOfNodesToScore") == 100
    assert all_nodes == sampled


@pytest.mark.parametrize("arguments", [["--only", "nobody"], ["--nodes", "0"], ["--pods", "-1"], ["--repeat", "x"]])
def test_wrong_flags_end_with_2_before_anything_starts(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert arguments[0] in capsys.readouterr().err


def test_writes_are_counted_by_kind_whatever_their_answer() -> None:
    metrics = """
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",resource="pods",subresource="status",verb="PATCH",version="v1"} 7
apiserver_request_total{code="404",resource="pods",subresource="status",verb="PATCH",version="v1"} 2
apiserver_request_total{code="201",resource="pods",subresource="binding",verb="POST",version="v1"} 1e+01
apiserver_request_total{code="201",resource="pods",subresource="",verb="POST",version="v1"} 99
apiserver_request_total{code="201",resource="events",subresource="",verb="POST",version="v1"} 3
apiserver_request_duration_seconds_count{resource="events",subresource="",verb="POST"} 5
"""
    assert parse_writes(metrics) == {"binds": 10, "patches": 9, "events made": 3, "events changed": 0}
