"""The text of all metrics, worked out rarely and in small steps."""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

TEXT_FORMAT = "text/plain; version=0.0.4"
OPENMETRICS_TYPE = "application/openmetrics-text"
OPENMETRICS_FORMAT = f"{OPENMETRICS_TYPE}; version=1.0.0"
KEPT_SECONDS = 1.0

_OPENMETRICS_END = b"# EOF\n"


class Scrapes:
    """Works out the text of all metrics at most once a second, whoever asks, and lets the loop go on meanwhile.

    HttpServer relies on it. All who ask in one format get the same text until it is a second old. The loop turns after
    each metric, so no decision waits for more than one of them. A metric is consistent in itself. Those whose names are
    `disabled` are left out.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        disabled: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry = registry
        self._disabled = frozenset(disabled)
        self._clock = clock
        self._kept: dict[str, _Text] = {}

    async def text(self, *, openmetrics: bool) -> tuple[bytes, str]:
        """Return the text and its content type; raises what a collector raises."""
        wanted = OPENMETRICS_FORMAT if openmetrics else TEXT_FORMAT
        kept = self._kept.get(wanted)
        if kept is None or self._clock() - kept.done_at >= KEPT_SECONDS:
            kept = self._kept[wanted] = _Text(self._registry, self._disabled, wanted, self._clock)
        # Whoever asked first may leave; the others still wait for it.
        return await asyncio.shield(kept.task), kept.content_type


class _Text:
    """One text in the making, or made at `done_at`."""

    def __init__(
        self, registry: CollectorRegistry, disabled: frozenset[str], wanted: str, clock: Callable[[], float]
    ) -> None:
        self._registry = registry
        self._disabled = disabled
        self._encode, self.content_type = choose_encoder(wanted)
        self._clock = clock
        self.done_at = float("inf")
        self.task = asyncio.create_task(self._work_out())

    async def _work_out(self) -> bytes:
        try:
            parts = []
            for metric in self._registry.collect():
                # A counter has lost the end of its name here.
                if metric.name not in self._disabled and f"{metric.name}_total" not in self._disabled:
                    parts.append(self._encode(_One(metric)).removesuffix(_OPENMETRICS_END))
                await asyncio.sleep(0)
            if self.content_type.startswith(OPENMETRICS_TYPE):
                parts.append(_OPENMETRICS_END)
            return b"".join(parts)
        finally:
            self.done_at = self._clock()


class _One(Collector):
    """A single metric, as the encoders take it."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterable[Metric]:
        return (self._metric,)
