from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client import Histogram as StockHistogram

from bayplan.server.instruments import Histogram, Tally, exponential_buckets

BOUNDS = (0.1, 0.5, 2.0)


def samples(instrument):
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in instrument.collect()
        for sample in family.samples
    }


def test_a_tally_without_labels_starts_at_zero():
    assert samples(Tally("pods_total", "Pods.")) == {("pods_total", ()): 0}


def test_a_tally_with_labels_starts_with_its_preset_series_only():
    tally = Tally("pods_total", "Pods.", ("result",), preset=[("scheduled",)])
    tally.values[("error",)] += 2
    assert samples(tally) == {
        ("pods_total", (("result", "scheduled"),)): 0,
        ("pods_total", (("result", "error"),)): 2,
    }


def test_a_gauge_tally_goes_down_again():
    tally = Tally("waiting_pods", "Pods.", ("plugin",), gauge=True)
    tally.values[("Fit",)] += 3
    tally.values[("Fit",)] += -2
    assert samples(tally) == {("waiting_pods", (("plugin", "Fit"),)): 1}
    assert next(iter(tally.collect())).type == "gauge"


def test_a_value_on_a_bound_belongs_to_the_bucket_below():
    histogram = Histogram("wait_seconds", "Wait.", BOUNDS)
    histogram.observe((), 0.5)
    exported = samples(histogram)
    assert [exported["wait_seconds_bucket", (("le", le),)] for le in ("0.1", "0.5", "2.0", "+Inf")] == [0, 1, 1, 1]


@given(st.lists(st.floats(min_value=0, max_value=10, allow_nan=False)))
def test_a_histogram_exports_what_prometheus_client_would(values):
    ours = Histogram("wait_seconds", "Wait.", BOUNDS, ("verb",))
    stock = StockHistogram("wait_seconds", "Wait.", ("verb",), buckets=BOUNDS, registry=CollectorRegistry())
    for value in values:
        ours.observe(("POST",), value)
        stock.labels("POST").observe(value)
    expected = {key: value for key, value in samples(stock).items() if not key[0].endswith("_created")}
    assert samples(ours) == expected


def test_exponential_buckets_multiply():
    bounds = exponential_buckets(0.001, 2, 15)
    assert len(bounds) == 15
    assert bounds[0] == 0.001
    assert bounds[-1] == 16.384
    assert bisect_left(bounds, 0.003) == 2
