from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client import Histogram as StockHistogram

from bayplan.metrics.instruments import Counter, Gauge, GroupCounter, Histogram, exponential_buckets
from bayplan.server.metrics import exported

BOUNDS = (0.1, 0.5, 2.0)


def of(family):
    return {(each.name, tuple(sorted(each.labels.items()))): each.value for each in family.samples}


def samples(instrument):
    return of(exported(instrument))


def test_a_counter_without_labels_starts_at_zero():
    assert samples(Counter("pods_total", "Pods.", ())) == {("pods_total", ()): 0}


def test_a_counter_with_labels_starts_with_its_preset_series_only():
    counter = Counter("pods_total", "Pods.", ("result",), preset=[("scheduled",)])
    counter.add("error", by=2)
    assert samples(counter) == {
        ("pods_total", (("result", "scheduled"),)): 0,
        ("pods_total", (("result", "error"),)): 2,
    }


def test_a_gauge_goes_down_again():
    gauge = Gauge("waiting_pods", "Pods.", ("plugin",))
    gauge.add("Fit", by=3)
    gauge.add("Fit", by=-2)
    assert samples(gauge) == {("waiting_pods", (("plugin", "Fit"),)): 1}
    assert exported(gauge).type == "gauge"


def test_one_addition_counts_for_each_member_of_a_group():
    counter = GroupCounter("runs_total", "Runs.", ("plugin", "point"))
    counter.count(("A", "B"), "Filter").value += 2
    counter.count(("A",), "Filter").value += 1
    assert samples(counter) == {
        ("runs_total", (("plugin", "A"), ("point", "Filter"))): 3,
        ("runs_total", (("plugin", "B"), ("point", "Filter"))): 2,
    }


def test_a_value_on_a_bound_belongs_to_the_bucket_below():
    histogram = Histogram("wait_seconds", "Wait.", (), BOUNDS)
    histogram.observe(0.5)
    found = samples(histogram)
    assert [found["wait_seconds_bucket", (("le", le),)] for le in ("0.1", "0.5", "2.0", "+Inf")] == [0, 1, 1, 1]


@given(st.lists(st.floats(min_value=0, max_value=10, allow_nan=False)))
def test_a_histogram_exports_what_prometheus_client_would(values):
    ours = Histogram("wait_seconds", "Wait.", ("verb",), BOUNDS)
    stock = StockHistogram("wait_seconds", "Wait.", ("verb",), buckets=BOUNDS, registry=CollectorRegistry())
    for value in values:
        ours.observe(value, "POST")
        stock.labels("POST").observe(value)
    expected = {key: value for key, value in of(*stock.collect()).items() if not key[0].endswith("_created")}
    assert samples(ours) == expected


def test_exponential_buckets_multiply():
    bounds = exponential_buckets(0.001, 2, 15)
    assert len(bounds) == 15
    assert bounds[0] == 0.001
    assert bounds[-1] == 16.384
    assert bisect_left(bounds, 0.003) == 2
