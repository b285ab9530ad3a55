"""On a real scheduler of Dask with worker processes of its own, all on this machine."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.cli.test_main import ROOT, exit_code
from tests.replay.test_runs import CONFIGURATIONS, runs_of
from tests.replay.traces import make_trace

from bayplan.replay.dask_cluster import ClusterError, outcomes_on
from bayplan.replay.runs import outcomes, sources
from bayplan.replay.trace import trace_lines

QUICK = {"connect_seconds": 0.5, "worker_seconds": 0.2}


class Cluster:
    """A scheduler, and workers that are processes."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder, self.processes, self.workers = folder, [], []
        file = folder / "scheduler.json"
        self.scheduler = self.start(
            "scheduler", "--no-dashboard", "--port", "0", "--scheduler-file", str(file), **settings
        )
        self.address = self.written_in(file)

    def written_in(self, file: Path) -> str:
        """The address that the scheduler writes once it listens."""
        while True:
            assert self.scheduler.poll() is None, "the scheduler ended"
            with suppress(OSError, ValueError):
                return json.loads(file.read_text())["address"]
            time.sleep(0.02)

    def start(self, kind: str, *arguments: str, path: str = str(ROOT / "operator")) -> subprocess.Popen:
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--host", "127.0.0.1", *arguments]
        with (self.folder / f"{kind}.log").open("ab") as log:
            process = subprocess.Popen(
                command, cwd=self.folder, env={**os.environ, "PYTHONPATH": path}, stdout=log, stderr=log
            )
        self.processes.append(process)
        return process

    def work(self, count: int = 1, **settings: str) -> None:
        """Have so many more workers."""
        for _ in range(count):
            arguments = (self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
            self.workers.append(self.start("worker", *arguments, **settings))

    def end(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@contextmanager
def cluster_in(folder: Path, workers: int, *, scheduler=None, worker=None):
    started = Cluster(folder, **(scheduler or {}))
    try:
        started.work(workers, **(worker or {}))
        yield started
    finally:
        started.end()


@pytest.fixture(autouse=True)
def _quiet(logging_as_it_was):
    """Dask sets up loggers."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with cluster_in(tmp_path_factory.mktemp("dask"), 2) as started:
        yield started


@pytest.fixture
def file_runs(tmp_path, monkeypatch):
    """Runs of a trace in a file that workers do not find under its name."""
    monkeypatch.chdir(tmp_path)
    Path("trace.jsonl").write_bytes(b"".join(trace_lines(make_trace([(0.0, 100.0), (10.0, 50.0)]))))
    return runs_of(sources("trace.jsonl", seeds=1, hours=1.0, scale=1.0)[0])


def runs_that_last(hours=0.5, scale=0.05, seeds=2):
    return [run for each in sources("openb-cpu", seeds=seeds, hours=hours, scale=scale) for run in runs_of(each)]


def figures(done):
    """What is not measured."""
    return {run: replace(outcome, seconds=0, decision_seconds=0) for run, outcome in done}


def test_outcomes_are_those_of_processes_also_after_an_interruption_and_the_trace_is_sent_along(cluster, file_runs):
    runs = [*file_runs, *runs_that_last(hours=0.2, seeds=1)]
    first = outcomes_on(cluster.address, runs, CONFIGURATIONS)
    done = figures([next(first)])
    first.close()
    done |= figures(outcomes_on(cluster.address, [run for run in runs if run not in done], CONFIGURATIONS))
    assert done == figures(outcomes(runs, CONFIGURATIONS))


def test_the_command_replays_on_the_cluster_as_without_it(cluster, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = ("replay", "openb", "--hours", "0.2", "--scale", "0.02", "--seeds", "2")
    assert exit_code(*arguments) == 0
    alone = capsys.readouterr()
    assert exit_code(*arguments, "--dask", cluster.address, "--results", "results.jsonl") == 0
    assert capsys.readouterr() == alone
    assert len(Path("results.jsonl").read_text().splitlines()) == 2


def test_a_run_of_another_version_is_refused_by_its_worker(cluster):
    (run,) = runs_that_last(seeds=1)[:1]
    with pytest.raises(ClusterError, match=r"a worker has bayplan 0\.1\.0, and 0\.0\.1 is needed"):
        [*outcomes_on(cluster.address, [replace(run, version="0.0.1")], CONFIGURATIONS)]


@pytest.mark.parametrize("without", ["scheduler", "worker"])
def test_a_cluster_without_bayplan_is_told(tmp_path, file_runs, without):
    (tmp_path / "bayplan").mkdir()
    (tmp_path / "bayplan" / "__init__.py").touch()
    with (
        cluster_in(tmp_path, 1, **{without: {"path": str(tmp_path)}}) as cluster,
        pytest.raises(ClusterError, match=r"has no bayplan of this version: No module named 'bayplan\.replay'"),
    ):
        [*outcomes_on(cluster.address, file_runs, CONFIGURATIONS)]


def test_runs_of_a_worker_that_dies_are_run_by_another_until_none_is_left_or_the_scheduler_goes(tmp_path):
    runs = runs_that_last()
    with cluster_in(tmp_path, 2) as cluster:
        replayed = outcomes_on(cluster.address, runs, CONFIGURATIONS)
        done = [next(replayed)]
        cluster.workers[0].send_signal(signal.SIGKILL)
        done.extend(replayed)
        assert {run for run, _ in done} == {*runs}
        cluster.workers[1].send_signal(signal.SIGKILL)
        cluster.workers[1].wait()
        with pytest.raises(ClusterError, match=r": has no worker$"):
            [*outcomes_on(cluster.address, runs, CONFIGURATIONS, **QUICK)]
        threading.Timer(0.2, cluster.scheduler.kill).start()
        with pytest.raises(ClusterError, match=": went away: "):
            [*outcomes_on(cluster.address, runs, CONFIGURATIONS)]


@contextmanager
def answering(words: bytes):
    """A server that says the same to everybody, and then nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        opened = []

        def serve() -> None:
            while True:
                try:
                    opened.append(server.accept()[0])
                except OSError:
                    return
                opened[-1].sendall(words)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        for each in opened:
            each.close()


@pytest.mark.parametrize("words", [b"", b"\xff" * 64, b"\0" * 64, b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_who_is_no_scheduler_is_told(words, file_runs):
    with answering(words) as address, pytest.raises(ClusterError, match="no scheduler of Dask answers") as told:
        [*outcomes_on(address, file_runs, CONFIGURATIONS, **QUICK)]
    assert str(told.value).isprintable()


ODD = [
    "127.0.0.1:1",
    "",
    "::::",
    "http://127.0.0.1:1",
    "inproc://a",
    "tcp://[::1",
    "a\nb:1",
    "\udcff:1",
    "\0",
    "x" * 9999,
]


@pytest.mark.parametrize("address", ODD, ids=ascii)
def test_an_address_that_is_none_is_told(address, file_runs):
    with pytest.raises(ClusterError, match="no scheduler of Dask answers") as told:
        [*outcomes_on(address, file_runs, CONFIGURATIONS, **QUICK)]
    assert str(told.value).isprintable()


def test_the_command_says_in_one_line_that_nobody_answers(capsys):
    assert exit_code("replay", "openb", "--hours", "0.1", "--dask", "http://127.0.0.1:1") == 1
    said = capsys.readouterr().err
    assert said.startswith("--dask: http://127.0.0.1:1: no scheduler of Dask answers: ")
    assert said.count("\n") == 1


def test_without_the_package_the_command_says_how_to_get_it(capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "bayplan.replay.dask_cluster")
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert exit_code("replay", "openb", "--hours", "0.1", "--dask", "127.0.0.1:1") == 2
    assert capsys.readouterr().err == "--dask: needs the package distributed: pip install 'bayplan[dask]'\n"


def test_dask_is_loaded_only_where_a_cluster_is_asked_for():
    code = "import bayplan.cli.replay, bayplan.replay.runs, sys; print({'dask', 'distributed'} & {*sys.modules})"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "operator", capture_output=True, text=True, check=True
    )
    assert ran.stdout == "set()\n"
