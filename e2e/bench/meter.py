"""What a process has cost so far, from /proc."""

import bisect
import os
import time
from collections import defaultdict
from pathlib import Path

from e2e.controlplane.process import Process

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class CpuMeter:
    """Samples a process's CPU time, so that it can be asked afterwards what it was at any moment."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._moments = [time.monotonic()]
        self._seconds = [0.0]

    def sample(self) -> None:
        """Takes a sample; between two of them CPU time is taken to grow evenly."""
        seconds = self._process.cpu_seconds()
        self._moments.append(time.monotonic())
        self._seconds.append(seconds)

    def at(self, moment: float) -> float:
        """Returns the CPU seconds used from the process's start to a monotonic moment."""
        return interpolate(self._moments, self._seconds, moment)


def interpolate(xs: list[float], ys: list[float], x: float) -> float:
    """Returns y at x on the line through the points; outside of them, the nearest point's."""
    after = bisect.bisect_left(xs, x)
    if after == 0:
        return ys[0]
    if after == len(xs):
        return ys[-1]
    left, right = xs[after - 1], xs[after]
    return ys[after - 1] + (ys[after] - ys[after - 1]) * (x - left) / (right - left)


def thread_cpu_seconds(process: Process) -> dict[str, float]:
    """Returns the CPU seconds of a running process by its threads' names; the first thread is `main`."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for task in Path(f"/proc/{process.pid}/task").iterdir():
        try:
            before, _, after = (task / "stat").read_text().rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue  # the thread ended between the listing and the reading
        fields = after.split()
        name = "main" if task.name == str(process.pid) else before.partition("(")[2]
        seconds[name] += (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND
    return dict(seconds)
