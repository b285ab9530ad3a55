"""What a terminal shows while `bayplan simulate` decides."""

import io
import sys

import pytest

from bayplan.cli.process import with_progress


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
