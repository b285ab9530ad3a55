"""What is forked of a process with the modules loaded is a process like one that its command started."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.preloaded import ROOT, Preloaded

CLUSTER = ROOT / "examples" / "cluster" / "worked-example.yaml"


@pytest.fixture(scope="module")
def preloaded():
    with Preloaded("bayplan.cli.web", "bayplan.doctor.checkup", "bayplan.web.serve") as preloaded:
        yield preloaded


@pytest.fixture
def start(preloaded, tmp_path):
    def start(*arguments, **environment):
        with (tmp_path / "out").open("wb") as out, (tmp_path / "err").open("wb") as err:
            return preloaded.start(
                arguments,
                stdout=out.fileno(),
                stderr=err.fileno(),
                environment={**os.environ, **environment},
                directory=tmp_path,
            )

    return start


@pytest.fixture
def serving(start, tmp_path):
    """A page that is served until somebody ends it."""
    forked = start("web", "--no-browser", "--cluster", str(CLUSTER))
    while "http://" not in (tmp_path / "out").read_text():
        assert forked.poll() is None, (tmp_path / "err").read_text()
    yield forked
    forked.kill()
    forked.wait()


@pytest.mark.parametrize("arguments", [["--version"], ["simulate"], ["config", "check", "missing.yaml"]])
def test_it_writes_and_ends_as_the_command_does(start, tmp_path, arguments):
    code = start(*arguments).wait(60)
    ran = subprocess.run([sys.executable, "-m", "bayplan", *arguments], capture_output=True, text=True, check=False)
    written = [(tmp_path / name).read_text() for name in ("out", "err")]
    assert (code, *written) == (ran.returncode, ran.stdout, ran.stderr)


def test_it_has_a_folder_and_an_environment_of_its_own(start, tmp_path):
    (tmp_path / "own.yaml").write_text("not: a kubeconfig\n")
    assert start("doctor", KUBECONFIG="own.yaml").wait(60) == 2
    assert "own.yaml" in (tmp_path / "err").read_text()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_it_ends_by_a_signal_and_not_before(serving, number, code):
    with pytest.raises(subprocess.TimeoutExpired):
        serving.wait(0.05)
    assert os.getsid(serving.pid) == serving.pid
    serving.send_signal(number)
    assert serving.wait(60) == code
    serving.send_signal(number)


def test_it_ends_with_the_process_that_asked_for_it(tmp_path):
    code = (
        "import os, sys, time; from tests.preloaded import Preloaded;"
        f"started = Preloaded().start(['web', '--no-browser', '--cluster', {str(CLUSTER)!r}],"
        "stdout=1, stderr=2, environment=dict(os.environ));"
        "print(started.pid, flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, cwd=ROOT, env=_environment(), stdout=subprocess.PIPE, text=True) as parent:
        lines = [parent.stdout.readline(), parent.stdout.readline()]
        child = int(next(line for line in lines if line.strip().isdigit()))
        assert _is_running(child)
        parent.kill()
    ended_by = time.monotonic() + 60
    while _is_running(child):
        assert time.monotonic() < ended_by


def _is_running(pid):
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] not in "ZX"


def _environment():
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'operator'}:{ROOT}"}
