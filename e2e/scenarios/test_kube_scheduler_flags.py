"""Bayplan takes and refuses the values of kube-scheduler's flags that the real kube-scheduler takes and refuses."""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.build import binary
from tests.config.record import DATA, FLAGS, flags_in

from bayplan.cli.kube_scheduler_flags import REFUSED

pytestmark = pytest.mark.controlplane

KUBECONFIG = """
{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],
clusters: [{name: a, cluster: {server: "http://127.0.0.1:1"}}], users: [{name: a, user: {}}]}
"""
WRITTEN = "written.yaml"

# Of each flag the values that both take; the first ones are given together, then the second ones, and so on.
TAKEN = {
    "--config": [""],
    "--master": ["http://127.0.0.1:2", ""],
    "--bind-address": ["127.0.0.1", "::", "0.0.0.0"],
    "--secure-port": ["10260", "0"],
    "--cert-dir": ["certs", ""],
    "--tls-cert-file": [""],
    "--tls-private-key-file": [""],
    "--tls-min-version": ["VersionTLS13", "VersionTLS12", ""],
    "--tls-cipher-suites": ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_AES_128_GCM_SHA256", ""],
    "--permit-port-sharing": ["true", "f"],
    "--permit-address-sharing": ["T", "0"],
    "--disable-http2-serving": ["1", "FALSE"],
    "--http2-max-streams-per-connection": ["100", "0", "-1"],
    "--authentication-kubeconfig": ["kubeconfig", ""],
    "--authentication-token-webhook-cache-ttl": ["1m30s", "0"],
    "--authentication-skip-lookup": ["true"],
    "--authentication-tolerate-lookup-failure": ["false", "true"],
    "--client-ca-file": [""],
    "--authorization-kubeconfig": ["kubeconfig", ""],
    "--authorization-always-allow-paths": ["/a,/b/*", "a", ""],
    "--authorization-webhook-cache-authorized-ttl": ["500ms"],
    "--authorization-webhook-cache-unauthorized-ttl": ["1h"],
    "--leader-elect": ["true", "false"],
    "--leader-elect-lease-duration": ["40s", "1m0.5s"],
    "--leader-elect-renew-deadline": ["30s"],
    "--leader-elect-retry-period": ["3s"],
    "--leader-elect-resource-lock": ["leases"],
    "--leader-elect-resource-name": ["x"],
    "--leader-elect-resource-namespace": ["y"],
    "--profiling": ["false", "true"],
    "--contention-profiling": ["false", "true"],
    "--kube-api-qps": ["7.5", "-1"],
    "--kube-api-burst": ["9"],
    "--kube-api-content-type": ["application/json"],
    "--pod-max-in-unschedulable-pods-duration": ["10s"],
    "--disabled-metrics": ["scheduler_goroutines,scheduler_cache_size", ""],
    "--show-hidden-metrics-for-version": ["1.36", ""],
    "--logging-format": ["json", "text"],
    "--v": ["3", "99"],
    "--log-flush-frequency": ["3s"],
    "--feature-gates": ["StorageCapacityScoring=false,AllAlpha=false", "kube:StorageCapacityScoring=true"],
}
# What both refuse.
REFUSED_VALUES = {
    "--config": ["nowhere"],
    "--bind-address": ["here"],
    "--secure-port": ["-1", "65536", "x"],
    "--tls-cert-file": ["alone"],
    "--tls-private-key-file": ["alone"],
    "--tls-min-version": ["VersionTLS9"],
    "--tls-cipher-suites": ["NONE"],
    "--permit-port-sharing": ["maybe"],
    "--permit-address-sharing": ["maybe"],
    "--disable-http2-serving": ["maybe"],
    "--http2-max-streams-per-connection": ["x"],
    "--authentication-token-webhook-cache-ttl": ["5"],
    "--authentication-skip-lookup": ["maybe"],
    "--authentication-tolerate-lookup-failure": ["maybe"],
    "--authorization-always-allow-paths": ["/a*b"],
    "--authorization-webhook-cache-authorized-ttl": ["5"],
    "--authorization-webhook-cache-unauthorized-ttl": ["x"],
    "--leader-elect": ["maybe"],
    "--leader-elect-lease-duration": ["20"],
    "--leader-elect-renew-deadline": ["x"],
    "--leader-elect-retry-period": ["x"],
    "--leader-elect-resource-lock": ["configmaps", ""],
    "--profiling": ["maybe"],
    "--contention-profiling": ["maybe"],
    "--kube-api-qps": ["x"],
    "--kube-api-burst": ["0", "-1", "1.5"],
    "--pod-max-in-unschedulable-pods-duration": ["5"],
    "--show-hidden-metrics-for-version": ["1.20", "1.37", "next"],
    "--logging-format": ["xml", ""],
    "--v": ["-1", "x"],
    "--log-flush-frequency": ["5", "0s", "-1s"],
    "--feature-gates": ["StorageCapacityScoring=maybe", "Nothing=true", "other:A=true", "StorageCapacityScoring"],
}
# What kube-scheduler takes and bayplan refuses; docs/configuration.md says so.
REFUSED_HERE = {
    "--tls-min-version": ["VersionTLS10"],
    "--tls-cipher-suites": ["TLS_RSA_WITH_RC4_128_SHA"],
    "--authentication-token-webhook-cache-ttl": ["-5s"],
    "--authorization-webhook-cache-authorized-ttl": ["-5s"],
    "--authorization-webhook-cache-unauthorized-ttl": ["-5s"],
    "--pod-max-in-unschedulable-pods-duration": ["0s", "-1s"],
}
# Where they are, and what the run writes.
_GIVEN = {"--kubeconfig", "--write-config-to"}


def listed(table: dict[str, list[str]]) -> list[str]:
    return [f"{flag}={value}" for flag, values in table.items() for value in values]


Run = Callable[[Path, list[str]], tuple[int, str]]
"""Runs a program in a folder; what it ended with, and what it said."""

# Each run is a process of its own that begins with everything loaded, which takes longer than all that it does.
_FORKS = """
import json, os, sys
from bayplan import cli
from bayplan.cli import run, serve

for line in sys.stdin:
    folder, arguments = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(folder)
        said = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1)
        os.dup2(said, 2)
        cli.main(arguments)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def run_kube_scheduler(folder: Path, arguments: list[str]) -> tuple[int, str]:
    command = [str(binary("kube-scheduler")), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def run_bayplan_loaded() -> Iterator[Run]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "operator"), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", _FORKS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as forks:
        assert forks.stdin is not None
        assert forks.stdout is not None
        asked, answered = forks.stdin, forks.stdout

        def run(folder: Path, arguments: list[str]) -> tuple[int, str]:
            print(json.dumps((str(folder), ["run", *arguments])), file=asked, flush=True)
            return int(answered.readline()), (folder / "said").read_text()

        yield run


class Both:
    """The two programs in a folder; each writes its configuration, or refuses, and serves nothing."""

    def __init__(self, folder: Path, run_bayplan: Run) -> None:
        self._folder = folder
        self._run_bayplan = run_bayplan
        (folder / "kubeconfig").write_text(KUBECONFIG)

    def theirs(self, *arguments: str) -> int:
        return self._run(run_kube_scheduler, arguments)

    def ours(self, *arguments: str) -> int:
        return self._run(self._run_bayplan, arguments)

    def written(self) -> dict[str, object]:
        """What the last run wrote of what flags set."""
        document = yaml.safe_load((self._folder / WRITTEN).read_text())
        connection, election = document["clientConnection"], document["leaderElection"]
        return {
            "profiling": (document["enableProfiling"], document["enableContentionProfiling"]),
            "connection": (connection["qps"], connection["burst"], connection["contentType"]),
            "election": election,
        }

    def _run(self, run: Run, arguments: tuple[str, ...]) -> int:
        fixed = ["--kubeconfig=kubeconfig", "--authentication-skip-lookup", f"--write-config-to={WRITTEN}"]
        (self._folder / WRITTEN).unlink(missing_ok=True)
        code, said = run(self._folder, [*fixed, *arguments])
        assert (code == 0) == (self._folder / WRITTEN).exists(), said
        return code


@pytest.fixture
def both(control_plane_binaries: None, tmp_path: Path, run_bayplan_loaded: Run) -> Both:
    return Both(tmp_path, run_bayplan_loaded)


def test_the_recorded_flags_are_those_of_the_binary(control_plane_binaries: None) -> None:
    helped = subprocess.run([binary("kube-scheduler"), "--help"], capture_output=True, text=True, check=True).stdout
    assert flags_in(helped) == set((DATA / FLAGS).read_text().split())


def test_each_flag_that_is_taken_is_tried() -> None:
    recorded = set((DATA / FLAGS).read_text().split()) - {"--help"}
    assert TAKEN.keys() | REFUSED_VALUES.keys() | _GIVEN == recorded - REFUSED.keys()


@pytest.mark.parametrize("values", [*itertools.zip_longest(*TAKEN.values())])
def test_what_kube_scheduler_takes_is_taken_and_means_the_same(both: Both, values: tuple[str | None, ...]) -> None:
    flags = [f"{flag}={value}" for flag, value in zip(TAKEN, values, strict=True) if value is not None]
    # Where it is not said, kube-scheduler contends always, and bayplan where it may; their Leases have other names.
    flags = ["--leader-elect=true", "--leader-elect-resource-name=x", *flags]
    assert both.theirs(*flags) == 0
    written = both.written()
    assert both.ours(*flags) == 0
    assert both.written() == written


@pytest.mark.parametrize("flag", listed(REFUSED_VALUES))
def test_what_kube_scheduler_refuses_is_refused(both: Both, flag: str) -> None:
    assert both.theirs(flag) != 0
    assert both.ours("--leader-elect=true", flag) == 2


@pytest.mark.parametrize("flag", listed(REFUSED_HERE))
def test_what_bayplan_alone_refuses_is_known(both: Both, flag: str) -> None:
    assert both.theirs(flag) == 0
    assert both.ours(flag) == 2


@pytest.mark.parametrize("arguments", [["-v=3"], ["-v", "3"], ["-v3"], ["--profiling"], ["--leader-elect"]])
def test_flags_are_written_alike(both: Both, arguments: list[str]) -> None:
    assert (both.theirs(*arguments), both.ours(*arguments)) == (0, 0)


@pytest.mark.parametrize("arguments", [["--profiling", "false"], ["--leader-elect", "false"]])
def test_a_switch_takes_no_value_after_a_space(both: Both, arguments: list[str]) -> None:
    assert both.theirs(*arguments) != 0
    assert both.ours(*arguments) == 2
