import asyncio
import os
import stat
import subprocess
import sys
import webbrowser
from pathlib import Path

import pytest

from bayplan.cli import main

OWN_CLUSTER = "kubectl get nodes,pods -A -o json | "


def demo(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(["demo", *arguments])
    return ended.value.code or 0


@pytest.fixture
def on_terminal(monkeypatch):
    """Run the command where standard output is a terminal, on which time passes at once."""

    def run(*arguments, term="xterm-256color"):
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", term)
        monkeypatch.setattr("bayplan.cli.demo.time.sleep", lambda seconds: None)
        return demo(*arguments)

    return run


def test_without_a_terminal_every_decision_is_a_line_and_every_stage_ends_with_a_picture(capsys):
    assert demo("--nodes", "12", "--pods", "30") == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[0].startswith("packed pod-00000: ")
    assert any(line.startswith("spread pod-00000: ") for line in lines)
    assert [line for line in lines if line.startswith("-- ")] == [
        "-- filled --",
        "-- urgent pods came --",
        "-- half departed --",
    ]
    assert "\x1b" not in out


def test_the_same_seed_prints_the_same(capsys):
    printed = []
    for seed in ("9", "9", "8"):
        demo("--seed", seed, "--pods", "20")
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != printed[2]


@pytest.mark.parametrize("columns", [40, 60])
def test_on_a_narrow_terminal_nothing_but_the_command_to_paste_is_wider(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    demo("--pods", "30")
    *lines, command = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= max(columns, len("How many nodes your own cluster would need:"))
    assert command.startswith(OWN_CLUSTER)


def test_the_last_line_is_a_command_that_runs_on_what_kubectl_prints(capsys, tmp_path):
    demo("--nodes", "1", "--pods", "1")
    command = capsys.readouterr().out.splitlines()[-1]
    assert command.startswith(OWN_CLUSTER)
    owner = '{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": true}'
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(
        "#!/bin/sh\n"
        'test "$*" = "get nodes,pods -A -o json" || exit 9\n'
        "cat <<END\n"
        '{"apiVersion": "v1", "kind": "List", "items": [\n'
        '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},'
        ' "status": {"allocatable": {"cpu": "4", "pods": "9"}}},\n'
        '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"},'
        ' "status": {"allocatable": {"cpu": "4", "pods": "9"}}},\n'
        '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "api", "ownerReferences": ['
        f"{owner}]}},"
        ' "spec": {"nodeName": "n1", "containers": [{"name": "api"}]}},\n'
        '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "ownerReferences": ['
        f"{owner}]}},"
        ' "spec": {"nodeName": "n2", "containers": [{"name": "web"}]}}]}\n'
        "END\n"
    )
    kubectl.chmod(0o755)
    bayplan = tmp_path / "bayplan"
    bayplan.write_text(f'#!/bin/sh\nexec {sys.executable} -m bayplan "$@"\n')
    bayplan.chmod(0o755)
    ran = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        env={**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": "operator"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "2 nodes in use before, 1 now; 1 could be emptied" in ran.stdout


@pytest.mark.parametrize(("found", "name"), [("/usr/bin/bayplan", "bayplan"), (None, ".venv/bin/bayplan")])
def test_the_command_is_named_as_a_shell_finds_it(capsys, monkeypatch, tmp_path, found, name):
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/bayplan").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.executable", str(tmp_path / ".venv/bin/python"))
    monkeypatch.setattr("bayplan.cli.demo.shutil.which", lambda _: found)
    demo("--nodes", "1", "--pods", "1")
    assert f"| {name} simulate " in capsys.readouterr().out


@pytest.mark.parametrize("speed", ["nan", "inf", "-inf", "0"])
def test_a_speed_nothing_can_be_drawn_at_is_refused(capsys, on_terminal, speed):
    assert on_terminal("--speed", speed) == 2
    assert "--speed" in capsys.readouterr().err


def test_a_terminal_is_drawn_on_and_ends_with_results_evictions_and_the_command(capsys, on_terminal):
    assert on_terminal("--speed", "1000000") == 0
    out = capsys.readouterr().out
    assert "\x1b[" in out
    tail = out[out.rindex("half departed") :]
    assert "packed urgent-02 (priority 10000) evicts" in tail
    assert "spread urgent-02 (priority 10000) evicts" in tail
    assert tail.splitlines()[-1].startswith(OWN_CLUSTER)


def test_no_color_is_heeded(capsys, on_terminal, monkeypatch):
    colored = "\x1b[36m"
    monkeypatch.delenv("NO_COLOR", raising=False)
    on_terminal("--pods", "30")
    assert colored in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    on_terminal("--pods", "30")
    assert colored not in capsys.readouterr().out


def test_a_dumb_terminal_gets_plain_lines(capsys, on_terminal):
    assert on_terminal("--pods", "10", term="dumb") == 0
    out = capsys.readouterr().out
    assert out.startswith("packed pod-00000: ")
    assert "\x1b" not in out


@pytest.mark.parametrize("is_live", [True, False])
def test_ctrl_c_ends_with_one_line_and_130(capsys, monkeypatch, on_terminal, is_live):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("bayplan.simulate.demo_frame.frame", interrupted)
    assert on_terminal("--pods", "10", "--live" if is_live else "--no-live") == 130
    assert capsys.readouterr().err == "bayplan demo: interrupted\n"


@pytest.mark.parametrize("flag", ["--browser", "--no-browser"])
def test_a_browser_is_for_the_page(capsys, flag):
    assert demo(flag) == 2
    assert "--web" in capsys.readouterr().err


class Browser:
    def __init__(self):
        self.opened = []

    def open(self, address):
        """Notes the file that it is told to open, with its mode and that of the folder, and what it has."""
        file = Path(address.removeprefix("file://"))
        modes = [stat.S_IMODE(each.stat().st_mode) for each in (file.parent, file)]
        self.opened.append((file, modes, file.read_text()))


def no_browser():
    raise webbrowser.Error("none")


@pytest.fixture
def page(monkeypatch, capsys):
    """Run with --web where serving ends once the page can be had; returns what is served, and what is printed."""

    def run(*arguments, get):
        served = []

        async def serve(source, inspector, listening, opened):
            served.append(source.page)
            address = f"http://127.0.0.1:{listening.getsockname()[1]}/?token=x"
            opened(address)
            await asyncio.sleep(0)

        class Thread:
            def __init__(self, *, target, args, daemon):
                self.start = lambda: target(*args)

        monkeypatch.setattr("bayplan.web.serve.serve", serve)
        monkeypatch.setattr("bayplan.web.serve.threading.Thread", Thread)
        monkeypatch.setattr("bayplan.web.serve.webbrowser.get", get)
        assert demo("--web", "--pods", "30", *arguments) == 0
        return served, capsys.readouterr().out.splitlines()

    return run


def test_the_page_of_the_cluster_is_served_and_its_address_printed_and_opened(page):
    browser = Browser()
    served, lines = page(get=lambda: browser)
    assert served == [{"mode": "snapshot", "title": "bayplan demo", "skipped": 0}]
    address = lines[0].removeprefix("bayplan demo: ")
    assert address.startswith("http://127.0.0.1:")
    # What a browser is started with is for every user of the machine to read: the name of a file, not the address.
    ((file, modes, text),) = browser.opened
    assert modes == [0o700, 0o600]
    assert f'content="0; url={address}"' in text
    assert not file.parent.exists()


def test_without_a_browser_the_address_is_printed(page):
    assert page(get=no_browser)[1][0].startswith("bayplan demo: http://127.0.0.1:")


def test_no_browser_is_looked_for_if_none_is_wanted(page):
    browser = Browser()
    assert page("--no-browser", get=lambda: browser)[1][0].startswith("bayplan demo: http://")
    assert browser.opened == []


def test_a_browser_that_would_take_over_the_terminal_is_not_opened(page, monkeypatch):
    monkeypatch.setattr(webbrowser.GenericBrowser, "open", lambda *_: pytest.fail("was opened"))
    assert page(get=lambda: webbrowser.GenericBrowser("w3m"))[1][0].startswith("bayplan demo: http://")
