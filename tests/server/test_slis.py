import time
from functools import partial

from prometheus_client import CollectorRegistry, generate_latest
from tests.server.samples import metrics

from bayplan.server.health import HealthChecks
from bayplan.server.metrics import AtScrape, sli_metrics


def test_it_counts_how_each_check_ended_that_a_probe_had_run():
    health, reasons = HealthChecks(), [None, "no", "no"]
    health.add_readiness("caches", lambda: reasons.pop(0))
    registry = CollectorRegistry()
    registry.register(AtScrape(partial(sli_metrics, health)))
    for _ in range(3):
        health.report("readyz")
    health.report("readyz", exclude=["caches"])
    health.report("livez")
    text = generate_latest(registry).decode()
    for line in (
        'kubernetes_healthcheck{name="caches",type="readyz"} 0.0',
        'kubernetes_healthchecks_total{name="caches",status="success",type="readyz"} 1.0',
        'kubernetes_healthchecks_total{name="caches",status="error",type="readyz"} 2.0',
        'kubernetes_healthchecks_total{name="ping",status="success",type="readyz"} 4.0',
        'kubernetes_healthcheck{name="ping",type="livez"} 1.0',
    ):
        assert line in text
    assert 'name="ping",status="error"' not in text


def test_it_says_since_when_it_counts():
    registry = CollectorRegistry()
    registry.register(AtScrape(partial(sli_metrics, HealthChecks())))
    started = registry.get_sample_value("process_start_time_seconds")
    # As in /metrics, where Prometheus finds restarts.
    assert started == metrics().registry.get_sample_value("process_start_time_seconds")
    assert time.time() - 86400 < started <= time.time()
