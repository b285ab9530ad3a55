"""What a soak says: a line a minute, a row for each look at a process, and a summary."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TextIO

from e2e.soak.instances import Sample
from e2e.soak.verdict import Check, Percentiles

_MB = 1e6


@dataclass(frozen=True, slots=True)
class Minute:
    """What happened in one minute; latencies are of the pods that were bound in it."""

    minute: int
    counts: Mapping[str, int]
    live: int
    unbound: int
    latency: Percentiles | None
    samples: Sequence[Sample]

    def line(self) -> str:
        """Returns it in one line."""
        latency = "no bind"
        if self.latency is not None:
            latency = f"p50 {1e3 * self.latency.p50:.0f} p99 {1e3 * self.latency.p99:.0f} ms"
        memory = ", ".join(
            f"{each.instance}{' (leads)' if each.leads else ''} {each.rss / _MB:.1f} MB" for each in self.samples
        )
        counts = ", ".join(f"{number} {what}" for what, number in self.counts.items())
        return f"minute {self.minute:3}: {counts}; {self.live} there, {self.unbound} unbound; {latency}; {memory}"


class SampleFile:
    """A CSV file of samples; each is there as soon as it was taken."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: TextIO = path.open("w", newline="")
        self._writer = csv.DictWriter(self._file, [field.name for field in fields(Sample)])
        self._writer.writeheader()

    def write(self, samples: Iterable[Sample]) -> None:
        """Adds rows."""
        self._writer.writerows(asdict(each) for each in samples)
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def verdict_lines(checks: Iterable[Check]) -> list[str]:
    """Returns a line for each check."""
    return [
        f"{'ok    ' if each.passed else 'FAILED'} {each.name}{': ' if each.found else ''}{each.found}"
        for each in checks
    ]
