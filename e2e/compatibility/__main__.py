"""Runs the scenarios of the manifests on each API server, and prints a table: `make compatibility`."""

import argparse
import datetime as dt
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass

from e2e.compatibility.api_server import VERSIONS, build_api_server
from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.build import BuildError, say_on_stderr
from e2e.controlplane.kubernetes_version import version_of
from e2e.controlplane.toolchain import ToolchainError

SCENARIOS = (
    "e2e/scenarios/test_applying.py",
    "e2e/scenarios/test_admission.py",
    "e2e/scenarios/test_priority_ceiling.py",
    "e2e/scenarios/test_production.py",
)
_COUNT = re.compile(r"(\d+) (passed|failed|error)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the scenarios went on one API server; `seconds` without the build."""

    version: str
    passed: int
    failed: int
    seconds: float

    def row(self, today: dt.date) -> str:
        """Returns a row of the table in docs/install.md."""
        result = f"{self.passed} of {self.passed + self.failed}"
        return f"| {self.version} | {result} | {self.seconds:.0f} s | {today} |"


def run_on(version: str) -> Outcome:
    """Builds the API server of a version and runs the scenarios on it; what they print goes to stdout."""
    assets = build_api_server(version)
    found = version_of(assets / "kube-apiserver")
    if found != version:
        raise BuildError(f"the API server built for {version} says that it is {found}")
    say_on_stderr(f"running {' '.join(SCENARIOS)} on {version}")
    started = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", *SCENARIOS]
    environment = {**os.environ, "KUBEBUILDER_ASSETS": str(assets)}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, flush=True)
    return outcome_of(version, done.stdout, time.monotonic() - started)


def outcome_of(version: str, printed: str, seconds: float) -> Outcome:
    """Reads what pytest printed last."""
    counts = {word: int(count) for count, word in _COUNT.findall(printed.splitlines()[-1])}
    failed = counts.get("failed", 0) + counts.get("error", 0)
    return Outcome(version, counts.get("passed", 0), failed, seconds)


def main() -> int:
    """Prints the table; exit code 1 if a scenario failed anywhere, or an API server could not be built."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m e2e.compatibility")
    parser.add_argument("--only", nargs="+", default=list(VERSIONS), choices=VERSIONS, metavar="VERSION")
    rows: list[Outcome] = []
    for version in parser.parse_args().only:
        try:
            rows.append(run_on(version))
        except (BuildError, ToolchainError, subprocess.CalledProcessError) as error:
            say_on_stderr(str(error))
            return 1
    print("| API server | Scenarios passed | They took | Run on |\n|---|---|---:|---|")
    today = dt.datetime.now(dt.UTC).date()
    for each in rows:
        print(each.row(today))
    return int(any(each.failed or not each.passed for each in rows))


if __name__ == "__main__":
    sys.exit(main())
