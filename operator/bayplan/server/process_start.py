"""When this process began."""

import time
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector

PROCESS_START: Final = "process_start_time_seconds"
"""The metric that says it, in `/metrics` and `/metrics/slis` (upstream: component-base metrics/processstarttime.go)."""

_READ_AT: Final = time.time()


def process_start_seconds() -> float:
    """Return when the process began, in seconds since the epoch; where the kernel is silent, when this was loaded."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    started = registry.get_sample_value(PROCESS_START)
    return _READ_AT if started is None else started
