"""The instances of bayplan under test: started, watched, started again as a kubelet would, and ended."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

from e2e.controlplane.bayplan_process import BayplanProcess

_LEADS = re.compile(r"^leader_election_master_status\{.*\} ([0-9.e+]+)$", re.MULTILINE)
_PENDING = re.compile(r"^scheduler_pending_pods\{.*\} ([0-9.e+]+)$", re.MULTILINE)
_STOP_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at one process, `seconds` after the start of the soak; `leads` is true for a single instance."""

    seconds: float
    instance: str
    pid: int
    leads: bool
    rss: int
    cpu: float
    pending: int


@dataclass(frozen=True, slots=True)
class Ending:
    """A process that ended; `told` says whether it was told to."""

    seconds: float
    instance: str
    exit_code: int
    told: bool


class Instances:
    """Keeps a number of instances running; each has a folder with its log."""

    def __init__(self, directory: Path, kubeconfig: Path, configuration: Mapping[str, Any], count: int) -> None:
        self.endings: list[Ending] = []
        self._directory = directory
        self._kubeconfig = kubeconfig
        self._configuration = configuration
        self._elects = bool(configuration["leaderElection"]["leaderElect"])
        self._leads: dict[int, bool] = {}
        self._starts = 0
        self.running = {f"bayplan-{index}": self._start(f"bayplan-{index}") for index in range(count)}

    def _start(self, name: str) -> BayplanProcess:
        self._starts += 1
        folder = self._directory / f"{name}-{self._starts}"
        folder.mkdir(parents=True)
        return BayplanProcess(folder, config=self._configuration, kubeconfig=self._kubeconfig, name=name)

    def wait_ready(self) -> None:
        """Waits until all of them are ready."""
        for process in self.running.values():
            process.wait_ready()

    def start_ended(self, seconds: float) -> None:
        """Starts again what has ended, and writes down how it did."""
        for name, process in list(self.running.items()):
            if process.exit_code is not None:
                self.endings.append(Ending(seconds, name, process.exit_code, told=False))
                self.running[name] = self._start(name)

    def sample(self, clock: Callable[[], float]) -> list[Sample]:
        """Looks at every process; one that does not answer for the moment is taken for what it was."""
        found = []
        for name, process in list(self.running.items()):
            pending = 0
            try:
                text = process.metrics()
                self._leads[process.pid] = not self._elects or "1" in [value[:1] for value in _LEADS.findall(text)]
                pending = int(sum(map(float, _PENDING.findall(text))))
            except (OSError, HTTPException):
                pass  # It starts, or ends: /proc tells.
            try:
                rss, cpu = process.rss_bytes(), process.cpu_seconds()
            except (OSError, ProcessLookupError):
                continue
            leads = self._leads.get(process.pid, False)
            found.append(Sample(clock(), name, process.pid, leads, rss, cpu, pending))
        return found

    def stop(self, seconds: float) -> None:
        """Tells all of them to end, the standby first, and writes down how they did."""
        for name, process in sorted(self.running.items(), key=lambda item: self._leads.get(item[1].pid, False)):
            self.endings.append(Ending(seconds, name, process.stop(_STOP_SECONDS), told=True))
        self.running.clear()

    def log_files(self) -> list[Path]:
        """Returns the log of every process there was."""
        return sorted(self._directory.glob("*/*.log"))
