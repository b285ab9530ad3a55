"""Runs `bayplan run` as a process of its own, the way a Deployment does."""

import compileall
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from http.client import HTTPException
from pathlib import Path
from typing import Any

from tests.preloaded import Preloaded

from e2e.controlplane.health import get_local, is_healthy
from e2e.controlplane.process import Child, Process, free_ports

REPOSITORY = Path(__file__).resolve().parents[2]


@cache
def _compile(checkout: Path) -> None:
    """Has the bytecode there that pip makes when it installs a package: a start compiles nothing."""
    compileall.compile_dir(checkout / "operator", quiet=1)


_preloaded: list[Preloaded] = []


@contextmanager
def modules_loaded_once() -> Iterator[None]:
    """Has all that start in the block load their modules once; not those of other source or with an environment."""
    with Preloaded("bayplan.cli.run", "bayplan.cli.serve") as preloaded:
        _preloaded.append(preloaded)
        yield
        _preloaded.clear()


def heedless_flags(checkout: Path) -> list[str]:
    """What has it schedule whoever else does, unless told to contend; checkouts of before have no flag for it."""
    flag = "--ignore-other-leases"
    return [flag] if any(flag in each.read_text() for each in (checkout / "operator/bayplan/cli").glob("*.py")) else []


class BayplanProcess(Process):
    """A running `bayplan run`; its port of plain HTTP on 127.0.0.1 is `http_port`, a free one unless it is given.

    It serves HTTPS at `secure_port`, 0 for none; checkouts of before there was HTTPS have no flag for it.
    `config` is a file or a document, without one bayplan's default is used. `checkout` is whose source runs: this
    repository's, or another's to compare with. `program` is the module to run, with arguments of its own
    before those of the `bayplan` command. Where modules are loaded once, `by_command` has it load its own. Unless
    told to contend it schedules whoever else does; with `heeds_other_leases` it behaves as one that a user starts.
    """

    def __init__(
        self,
        directory: Path,
        *,
        config: Path | Mapping[str, Any] | None = None,
        kubeconfig: Path | None,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        name: str = "bayplan",
        checkout: Path = REPOSITORY,
        program: Sequence[str | Path] = ("bayplan",),
        http_port: int | None = None,
        secure_port: int = 0,
        heeds_other_leases: bool = False,
        by_command: bool = False,
    ) -> None:
        _compile(checkout)
        of_here = environment is None and (checkout, *program) == (REPOSITORY, "bayplan")
        self._is_forked = bool(_preloaded) and of_here and not by_command
        self.secure_port = secure_port
        self.http_port = free_ports(1)[0] if http_port is None else http_port
        command: list[str | Path] = [sys.executable, "-m", *program, "run"]
        if isinstance(config, Mapping):
            document, config = config, directory / f"{name}-config.yaml"
            config.write_text(json.dumps(document))  # JSON is YAML
        if config is not None:
            command += ["--config", config]
        if kubeconfig is not None:
            command += ["--kubeconfig", kubeconfig]
        if (checkout / "operator/bayplan/server/options.py").exists():
            command += ["--secure-port", str(secure_port)]
        if not heeds_other_leases:
            command += heedless_flags(checkout)
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

    def _start(
        self, command: list[str], log: int, environment: Mapping[str, str] | None, directory: Path | None
    ) -> Child:
        if not self._is_forked or environment is None or directory is None:
            return super()._start(command, log, environment, directory)
        arguments = command[command.index("run") :]
        return _preloaded[0].start(arguments, stdout=log, stderr=log, environment=environment, directory=directory)

    def get(self, path: str) -> tuple[int, str]:
        """Returns the status and text of one of its endpoints."""
        return get_local(self.http_port, path)

    def metrics(self) -> str:
        """Returns the text of /metrics."""
        status, text = self.get("/metrics")
        if status != 200:
            raise HTTPException(f"/metrics answered {status}: {text[:200]}")
        return text

    def is_ready(self) -> bool:
        """Whether /readyz answers 200."""
        return is_healthy(self.http_port, path="/readyz")
