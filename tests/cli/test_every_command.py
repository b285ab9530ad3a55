"""What no command may do: end with a traceback, or with more than a line, over an output or a file that is none."""

import os
import signal

import pytest
from tests.cli.test_main import ROOT, exit_code, shell
from tests.preloaded import Preloaded

CLUSTER = ROOT / "examples" / "cluster" / "worked-example.yaml"
WRITING = [
    "--help",
    "run --help",
    "config check --help",
    "--version",
    "config check examples/worked-example.yaml",
    "config check -o json examples/worked-example.yaml",
    "config show",
    "config convert examples/worked-example.yaml",
    "config schema",
    "completion bash",
    f"simulate --cluster {CLUSTER}",
    f"simulate --cluster {CLUSTER} -o json",
    f"doctor --cluster {CLUSTER}",
    f"doctor --cluster {CLUSTER} -o json",
    f"plan --cluster {CLUSTER} --nodes 2",
    f"plan --cluster {CLUSTER} --nodes 2 -o json",
    f"web --no-browser --cluster {CLUSTER}",
    "demo --no-live --pods 5",
    "trace generate openb --hours 0.1 --scale 0.01 -o -",
    "replay openb --hours 0.1 --scale 0.01",
    "replay openb --hours 0.1 --scale 0.01 -o json",
]
"""Commands that write to standard output, each in its way."""


@pytest.fixture(scope="module")
def preloaded():
    modules = ("config.load", "doctor.checkup", "plan.goals", "replay.replay", "simulate.simulator", "web.serve")
    with Preloaded("bayplan.cli", *(f"bayplan.{module}" for module in modules), "rich.progress") as preloaded:
        yield preloaded


@pytest.fixture
def ran(preloaded, tmp_path):
    """Run a command whose standard output is a file descriptor, which is then closed."""

    def ran(command, stdout):
        with (tmp_path / "err").open("w+") as stderr:
            running = preloaded.start(
                command.split(), stdout=stdout, stderr=stderr.fileno(), environment=os.environ, directory=ROOT
            )
            os.close(stdout)
            return running.wait(180), (tmp_path / "err").read_text()

    return ran


@pytest.mark.parametrize("command", WRITING)
def test_a_full_disk_is_one_line_and_exit_code_1(ran, command):
    ended = ran(command, os.open("/dev/full", os.O_WRONLY))
    assert ended == (1, "bayplan: standard output: No space left on device\n")


@pytest.mark.parametrize("command", [each for each in WRITING if "--help" not in each or each == "--help"])
def test_a_reader_that_goes_away_ends_the_command_without_a_word(ran, command):
    reading, writing = os.pipe()
    os.close(reading)
    assert ran(command, writing) == (1, "")


@pytest.mark.parametrize("command", ["--version", "config show", f"simulate --cluster {CLUSTER}", "completion fish"])
def test_a_closed_output_is_one_line_and_exit_code_1(command):
    ran = shell(f"{command} >&-")
    assert (ran.returncode, ran.stderr) == (1, "bayplan: standard output: Bad file descriptor\n")


SERVER = ("--server", "https://127.0.0.1:1")
READING = {
    "config check": ("config", "check", "--"),
    "config show": ("config", "show", "--"),
    "config convert": ("config", "convert", "--"),
    "simulate --cluster": ("simulate", "--cluster"),
    "simulate --add": ("simulate", "--cluster", str(CLUSTER), "--add"),
    "simulate --config": ("simulate", "--cluster", str(CLUSTER), "--config"),
    "doctor --cluster": ("doctor", "--cluster"),
    "doctor --config": ("doctor", "--cluster", str(CLUSTER), "--config"),
    "doctor --kubeconfig": ("doctor", "--kubeconfig"),
    "plan --cluster": ("plan", "--nodes", "1", "--cluster"),
    "plan --config": ("plan", "--nodes", "1", "--cluster", str(CLUSTER), "--config"),
    "plan --fit": ("plan", "--cluster", str(CLUSTER), "--fit"),
    "plan --kubeconfig": ("plan", "--nodes", "1", "--kubeconfig"),
    "explain --kubeconfig": ("explain", "pod", "--kubeconfig"),
    "explain --token-file": ("explain", "pod", *SERVER, "--token-file"),
    "snapshot --kubeconfig": ("snapshot", "-o", "-", "--kubeconfig"),
    "web --cluster": ("web", "--no-browser", "--cluster"),
    "web --config": ("web", "--no-browser", "--cluster", str(CLUSTER), "--config"),
    "web --kubeconfig": ("web", "--no-browser", "--kubeconfig"),
    "replay": ("replay", "--"),
    "replay --config": ("replay", "openb", "--config"),
    "trace record --kubeconfig": ("trace", "record", "-o", "-", "--kubeconfig"),
    "run --config": ("run", "--config"),
    "run --kubeconfig": ("run", "--kubeconfig"),
    "run --write-config-to": ("run", "--write-config-to"),
}
"""Where a command takes the name of a file; certificates of `run` are read only once the API server is known."""
ODD_NAMES = ("missing", "-missing", "folder", "binary", "a\nb", "a\x1b[31mb", "a\udcffb", "ä b")


@pytest.fixture
def ended(tmp_path, monkeypatch, capfd):
    """Run a command in a folder that has something odd in it; return its exit code and standard error."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary").write_bytes(b"kind: \xff\x00\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    # `run` has the process ignore it.
    before = signal.getsignal(signal.SIGHUP)

    def ended(*arguments):
        code = exit_code(*arguments)
        return code, capfd.readouterr().err

    yield ended
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("name", ODD_NAMES, ids=ascii)
@pytest.mark.parametrize("place", [each for each in READING if each != "run --write-config-to"])
def test_a_file_that_cannot_be_read_is_one_line_that_names_it(ended, place, name):
    code, error = ended(*READING[place], name)
    assert code in {1, 2}
    assert error.count("\n") == 1
    assert error.rstrip("\n").isprintable()
    assert name.split("\n")[0].split("\x1b")[0].split("\udcff")[0] in error


@pytest.mark.parametrize("name", ["folder", "missing/a\nb", "missing/a\x1bb", "missing/a\udcffb"], ids=ascii)
def test_a_file_that_cannot_be_written_is_one_line_that_names_it(ended, name):
    code, error = ended(*READING["run --write-config-to"], name)
    assert code == 1
    assert (error.count("\n"), error.rstrip("\n").isprintable()) == (1, True)
    assert error.startswith(f"--write-config-to: {name[:8].rstrip()}"[:25])


@pytest.mark.parametrize("place", [each for each in READING if each.endswith("--kubeconfig")])
def test_a_folder_in_place_of_a_kubeconfig_is_called_one(ended, place):
    assert ended(*READING[place], "folder")[1].endswith("folder: cannot be read: Is a directory\n")
