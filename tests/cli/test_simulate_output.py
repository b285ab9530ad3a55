"""What becomes of `bayplan simulate` when its output cannot be written, and what a terminal shows meanwhile."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bayplan.cli.progress import with_progress

ROOT = Path(__file__).parents[2]
CLUSTER = json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def on_a_terminal(monkeypatch):
    """Make standard error a terminal, from the call on, and return what is written to it."""

    def on_a_terminal():
        stream = Terminal()
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setenv("TERM", "xterm")
        return stream

    return on_a_terminal


def counting(count):
    numbers = iter(range(count))
    return lambda: next(numbers, None)


def test_a_terminal_shows_how_far_it_is_and_nothing_is_lost(on_a_terminal):
    terminal = on_a_terminal()
    assert list(with_progress(counting(300), 300, after_seconds=0)) == list(range(300))
    assert "Deciding" in terminal.getvalue()
    assert "256/300" in terminal.getvalue()


@pytest.mark.parametrize(("count", "after", "hidden"), [(300, 60, False), (10, 0, False), (300, 0, True)])
def test_who_waits_for_a_moment_only_or_has_it_hidden_sees_no_bar(on_a_terminal, count, after, hidden):
    terminal = on_a_terminal()
    assert len(list(with_progress(counting(count), count, after_seconds=after, hidden=hidden))) == count
    assert terminal.getvalue() == ""


def test_a_file_gets_no_bar(capsys):
    assert len(list(with_progress(counting(300), 300, after_seconds=0))) == 300
    assert capsys.readouterr() == ("", "")


def run(command, files, tmp_path):
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "operator")}
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        cwd=tmp_path,
        env={**environment, "BAYPLAN": f"{sys.executable} -m bayplan simulate --cluster in"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_full_disk_is_one_line_and_exit_code_1(tmp_path, output):
    ended = run(f"$BAYPLAN -o {output} > /dev/full", {"in": CLUSTER}, tmp_path)
    assert (ended.returncode, ended.stderr) == (1, "bayplan: standard output: No space left on device\n")


def test_a_reader_that_goes_away_ends_the_command_without_a_word(tmp_path):
    (tmp_path / "in").write_text(CLUSTER)
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [sys.executable, "-m", "bayplan", "simulate", "--cluster", "in", "-o", "json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "operator")},
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, "")


def test_a_closed_output_is_one_line_and_exit_code_1(tmp_path):
    ended = run("$BAYPLAN >&-", {"in": CLUSTER}, tmp_path)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
