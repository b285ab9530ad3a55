"""Figures that tests make up."""

from e2e.bench.results import Drain, Steady


def drain(*, pods: int = 100, seconds: float = 1.0, event_lag: float = 0.0, peak_rss: int = 90_000_000) -> Drain:
    """The figures of a drain, from the first bind at 2 s on."""
    return Drain(
        pods=pods,
        first_bind=2.0,
        last_bind=2.0 + seconds,
        last_event=2.0 + seconds + event_lag,
        cpu_at_first_bind=0.5,
        cpu_at_last_bind=0.7,
        cpu_at_last_event=0.8,
        threads={"main": 0.8},
        apiserver_cpu=0.25,
        etcd_cpu=0.05,
        peak_rss=peak_rss,
        nodes_used=1,
        events_at_last_bind=pods,
        events=pods,
    )


def steady() -> Steady:
    """The figures of a flow."""
    return Steady(
        pods=10,
        rate=5.0,
        achieved_rate=5.0,
        p50=0.011,
        p99=0.042,
        longest=0.05,
        create_p50=0.004,
        cpu=0.03,
        events=10,
        peak_rss=1,
        all_bound=2.0,
    )
