"""Runs `bayplan run` as a process of its own, the way a Deployment does."""

import compileall
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from http.client import HTTPException
from pathlib import Path

from e2e.controlplane.health import get_local, is_healthy
from e2e.controlplane.process import Process, free_ports
from e2e.controlplane.waiting import wait_until

REPOSITORY = Path(__file__).resolve().parents[2]
READY_SECONDS = 60.0


@cache
def _compile(checkout: Path) -> None:
    """Has the bytecode there that pip makes when it installs a package: a start compiles nothing."""
    compileall.compile_dir(checkout / "operator", quiet=1)


class BayplanProcess(Process):
    """A running `bayplan run`; its HTTP port on 127.0.0.1 is `http_port`.

    `checkout` is whose source runs: this repository's, or another's to compare with.
    """

    def __init__(
        self,
        directory: Path,
        *,
        config: Path | None,
        kubeconfig: Path | None,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        name: str = "bayplan",
        checkout: Path = REPOSITORY,
    ) -> None:
        _compile(checkout)
        (self.http_port,) = free_ports(1)
        command: list[str | Path] = [sys.executable, "-m", "bayplan", "run"]
        if config is not None:
            command += ["--config", config]
        if kubeconfig is not None:
            command += ["--kubeconfig", kubeconfig]
        command += ["--bind-address", "127.0.0.1", "--http-port", str(self.http_port), *arguments]
        super().__init__(
            name,
            command,
            log_path=directory / f"{name}.log",
            environment={
                **os.environ,
                "PYTHONPATH": str(checkout / "operator"),
                "PYTHONUNBUFFERED": "1",
                **(environment or {}),
            },
            directory=directory,
        )

    @property
    def metrics_port(self) -> int:
        return self.http_port

    def get(self, path: str) -> tuple[int, str]:
        """Returns the status and text of one of its endpoints."""
        return get_local(self.http_port, path)

    def metrics(self) -> str:
        """Returns the text of /metrics."""
        status, text = self.get("/metrics")
        if status != 200:
            raise HTTPException(f"/metrics answered {status}: {text[:200]}")
        return text

    def wait_ready(self, timeout_seconds: float = READY_SECONDS) -> None:
        """Waits until /readyz answers 200.

        Raises:
            RuntimeError: the process ended instead; the message has the end of its log.
            TimeoutError: it did neither.
        """

        def ready_or_dead() -> bool:
            if self.exit_code is not None:
                raise RuntimeError(f"{self.name} exited with {self.exit_code}:\n{self.log_tail()}")
            return is_healthy(self.http_port, path="/readyz")

        wait_until(
            ready_or_dead,
            f"{self.name} becoming ready",
            timeout_seconds=timeout_seconds,
            detail=lambda: f"\n{self.log_tail()}",
        )
