import random
from collections import Counter
from math import log
from statistics import fmean, median, stdev

import pytest

from bayplan.replay.generators import GENERATORS, GPU_MILLI, generate, lognormal, median_of, poisson_arrivals
from bayplan.replay.pools import Pools


@pytest.mark.parametrize("name", GENERATORS)
def test_the_same_seed_gives_the_same_trace_and_every_pod_fits_on_a_node(name):
    first, again, other = (generate(name, seed=seed, hours=1.0, scale=0.1) for seed in (1, 1, 2))
    assert first == again != other
    assert all(Pools(first).of_template.values())
    arrivals = [each.arrival_seconds for each in first.pods]
    assert arrivals == sorted(arrivals)
    assert arrivals[-1] < first.header.seconds == 3600.0


@pytest.mark.parametrize(("name", "hours"), [("ci-fleet", 24.0), ("openb", 2.0), ("openb-cpu", 2.0)])
def test_scale_is_how_many_times_the_load_there_is(name, hours):
    small, large = (len(generate(name, seed=1, hours=hours, scale=scale).pods) for scale in (0.02, 0.1))
    assert large / small == pytest.approx(5, rel=0.15)


def test_the_ci_fleet_has_its_peak_on_weekdays_before_noon_and_its_trough_at_night():
    pods = generate("ci-fleet", seed=1, hours=168.0, scale=0.1).pods
    by_hour = Counter(int(each.arrival_seconds // 3600) for each in pods)
    assert by_hour[10] == pytest.approx(850, rel=0.15)
    assert by_hour[26] == pytest.approx(240, rel=0.25)
    assert by_hour[5 * 24 + 10] == pytest.approx(100, rel=0.35)


def test_the_jobs_of_the_ci_fleet_are_of_its_sizes_and_take_52_minutes():
    trace = generate("ci-fleet", seed=1, hours=24.0, scale=0.2)
    shares = Counter(each.template for each in trace.pods)
    assert shares["l-x86iavx512-8-16"] / len(trace.pods) == pytest.approx(0.53, abs=0.02)
    assert fmean(each.duration_seconds for each in trace.pods) / 60 == pytest.approx(52, rel=0.05)
    assert trace.templates["l-x86iavx512-8-16"].requests == {"cpu": "8320m", "memory": "16906Mi"}


def test_nodes_of_the_ci_fleet_are_the_largest_of_their_fleet_less_what_kubelet_and_daemon_sets_take():
    trace = generate("ci-fleet", seed=1, hours=0.1, scale=0.1)
    pool = next(each for each in trace.header.pools if each.name == "c7a-12xl")
    assert pool.capacity["cpu"] == 192
    assert pool.allocatable["cpu"] == f"{192_000 - 60 - 10 - 2 * 5 - 470}m"
    assert pool.allocatable["memory"] == f"{363_724 - 255 - 11 * 250 - 100}Mi"
    assert pool.daemons == {"cpu": "460m", "memory": "1158Mi"}


def test_openb_has_the_shares_of_its_pods_and_the_nodes_of_its_cluster():
    trace = generate("openb", seed=1, hours=4.0, scale=0.2)
    milli = [trace.template_of(each).requests.get(GPU_MILLI, 0) for each in trace.pods]
    assert sum(each == 1000 for each in milli) / len(milli) == pytest.approx(0.48, abs=0.02)
    assert sum(0 < each < 1000 for each in milli) / len(milli) == pytest.approx(0.378, abs=0.02)
    assert median(each.duration_seconds for each in trace.pods) == pytest.approx(540, rel=0.1)
    whole = generate("openb", seed=1, hours=0.1, scale=1.0).header.pools
    assert sum(each.count for each in whole if GPU_MILLI in each.capacity) == pytest.approx(1213, rel=0.03)


def test_openb_cpu_has_the_same_pods_without_gpus_on_nodes_that_hold_each_of_them():
    trace = generate("openb-cpu", seed=1, hours=4.0, scale=0.2)
    assert {name for each in trace.templates.values() for name in each.requests} == {"cpu", "memory"}
    assert [each.capacity["cpu"] for each in trace.header.pools] == [32]
    assert len(trace.pods) == pytest.approx(len(generate("openb", seed=1, hours=4.0, scale=0.2).pods), rel=0.1)


def test_arrivals_come_at_the_rate_of_their_time():
    rng = random.Random(1)
    times = [*poisson_arrivals(rng, lambda now: 2.0 if now < 1000 else 0.5, 2.0, 2000.0)]
    assert sum(each < 1000 for each in times) == pytest.approx(2000, rel=0.1)
    assert sum(each >= 1000 for each in times) == pytest.approx(500, rel=0.2)


def test_durations_have_the_mean_that_was_asked_for():
    rng = random.Random(1)
    assert fmean(lognormal(rng, median_of(60.0, 0.8), 0.8) for _ in range(20000)) == pytest.approx(60, rel=0.05)


def test_with_hints_the_same_pods_say_how_long_they_run():
    plain, known, wrong = (generate("openb", seed=3, hours=1.0, scale=0.05, hints=each) for each in (None, 0.0, 0.45))
    assert {each.expected_seconds for each in plain.pods} == {None}
    assert [each.expected_seconds for each in known.pods] == [max(each.duration_seconds, 0.001) for each in plain.pods]
    factors = [log(each.expected_seconds / each.duration_seconds) for each in wrong.pods if each.duration_seconds > 1]
    assert stdev(factors) == pytest.approx(0.45, rel=0.1)
    assert fmean(factors) == pytest.approx(0.0, abs=0.05)
