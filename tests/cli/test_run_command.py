import json
import logging
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.api.credential_scene import kubeconfig

from bayplan.cli import main
from bayplan.logs.formats import V2


@pytest.mark.parametrize(
    ("flags", "level"),
    [((), logging.INFO), (("-v", "0"), logging.INFO), (("-v2",), V2), (("--v=2",), V2), (("--v", "10"), logging.DEBUG)],
)
def test_it_logs_as_asked_but_not_kopfs_line_for_each_event(tmp_path, capsys, flags, level):
    with pytest.raises(SystemExit) as ended:
        main(["run", "--kubeconfig", str(tmp_path / "none"), *flags])
    assert ended.value.code == 2
    assert logging.getLogger("bayplan").getEffectiveLevel() == level
    assert logging.getLogger("kopf.objects").getEffectiveLevel() == logging.ERROR
    logging.getLogger("kopf.objects").info("Handler 'bayplan' succeeded.")
    logging.getLogger("bayplan").warning("told")
    assert capsys.readouterr().err.splitlines()[-1].endswith("W bayplan told")


def test_it_logs_json_if_told_to(tmp_path, capsys):
    config = tmp_path / "policy.yaml"
    config.write_text("{kind: Policy, apiVersion: v1, alwaysCheckAllPredicates: true}")
    with pytest.raises(SystemExit):
        main(["run", "--config", str(config), "--kubeconfig", str(tmp_path / "none"), "--logging-format=json"])
    line = json.loads(capsys.readouterr().err.splitlines()[0])
    assert (line["level"], line["v"], line["logger"]) == ("warning", 0, "bayplan.cli.serve")


@pytest.mark.parametrize(
    ("flag", "told"),
    [
        (("--logging-format", "yaml"), "Invalid value for '--logging-format': 'yaml' is not one of 'text', 'json'"),
        (("-v", "-1"), "Invalid value for '--v' / '-v': -1 is not in the range x>=0"),
        (("-v", "much"), "Invalid value for '--v' / '-v': 'much' is not a valid integer range"),
    ],
)
def test_a_format_or_level_that_is_none_is_refused_by_name(capsys, flag, told):
    with pytest.raises(SystemExit) as ended:
        main(["run", *flag])
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_what_an_old_format_says_and_nobody_does_is_logged(tmp_path, capsys):
    config = tmp_path / "policy.yaml"
    config.write_text("{kind: Policy, apiVersion: v1, alwaysCheckAllPredicates: true}")
    with pytest.raises(SystemExit) as ended:
        main(["run", "--config", str(config), "--kubeconfig", str(tmp_path / "none")])
    assert ended.value.code == 2
    note = "alwaysCheckAllPredicates: has no effect: the first filter that rejects is named"
    assert any(line.endswith(f"W bayplan.cli.serve {config}: {note}") for line in capsys.readouterr().err.splitlines())


def test_the_name_of_the_file_stays_on_its_line(tmp_path, capsys):
    config = tmp_path / "a\nb.yaml"
    config.write_text("{kind: Policy, apiVersion: v1, alwaysCheckAllPredicates: true}")
    with pytest.raises(SystemExit):
        main(["run", "--config", str(config), "--kubeconfig", str(tmp_path / "none")])
    assert f'W bayplan.cli.serve "{tmp_path}/a\\nb.yaml": alwaysCheckAllPredicates: ' in capsys.readouterr().err


@pytest.mark.parametrize("command", [["run"], ["simulate", "--cluster", "/dev/null"]])
def test_an_extenders_certificates_are_refused_as_by_config_check(tmp_path, capsys, command):
    config = tmp_path / "config.yaml"
    header = "apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration"
    config.write_text(f"{{{header}, extenders: [{{tlsConfig: {{caFile: /nowhere}}}}]}}")
    with pytest.raises(SystemExit) as ended:
        main([*command, "--config", str(config)])
    assert ended.value.code == 2
    told = "extenders[0].tlsConfig.caFile: cannot be read: No such file or directory"
    assert capsys.readouterr().err == f"{config}:1:105: {told}\n"


@pytest.mark.parametrize("flags", [["--secure-port"], ["--secure-port=0", "--http-port"]])
def test_a_port_in_use_is_told_with_its_flag_and_the_address_it_was_to_listen_at(tmp_path, capsys, monkeypatch, flags):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit) as ended:
            main(["run", "--kubeconfig", str(kubeconfig(tmp_path)), *flags, str(port)])
    assert ended.value.code == 1
    assert f"bayplan: {flags[-1]}: 127.0.0.1:{port}: " in capsys.readouterr().err


def start(tmp_path, server_url):
    """`bayplan run` as a process of its own, once it has said its first word."""
    file = kubeconfig(tmp_path, cluster={"server": server_url})
    process = subprocess.Popen(
        [sys.executable, "-m", "bayplan", "run", "--kubeconfig", file, "--secure-port=0", "--http-port=0"],
        env={**os.environ, "PYTHONPATH": "operator"},
        cwd=Path(__file__).resolve().parents[2],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert "bayplan starts" in process.stderr.readline()
    return process


def test_sigterm_ends_it_with_0_even_before_it_serves(tmp_path):
    process = start(tmp_path, "https://127.0.0.1:1")
    process.send_signal(signal.SIGTERM)
    _, log = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in log


def test_threads_of_libraries_have_no_say_in_how_it_ends(tmp_path):
    process = start(tmp_path, "https://127.0.0.1:1")
    while "serving metrics" not in (line := process.stderr.readline()):
        assert line, "it ended"
    process.send_signal(signal.SIGTERM)
    _, log = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in log) == (0, False)


@pytest.mark.parametrize(("flags", "ended"), [(["--config", "any"], 0), ([], -signal.SIGHUP)], ids=["file", "none"])
def test_sighup_before_it_serves_ends_it_only_where_there_is_no_file_to_read_anew(flags, ended):
    code = (
        "import os, signal, bayplan.cli, bayplan.cli.serve\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
        "bayplan.cli.serve.serve = lambda *_, **__: os.kill(os.getpid(), signal.SIGHUP)\n"
        f"bayplan.cli.main({['run', *flags]})\n"
    )
    found = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": "operator"}, check=False)
    assert found.returncode == ended


@pytest.mark.parametrize(("command", "ended"), [("run", 0), ("demo", -signal.SIGTERM)])
def test_sigterm_ends_a_run_with_0_while_it_is_still_being_loaded(tmp_path, command, ended):
    (tmp_path / "click.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n")
    folders = f"{tmp_path}{os.pathsep}operator"
    arguments = [sys.executable, "-m", "bayplan", command]
    found = subprocess.run(arguments, env={**os.environ, "PYTHONPATH": folders}, check=False, timeout=60)
    assert found.returncode == ended


def serve_instead(tmp_path, body):
    """Runs `bayplan run` on a file with an App that does only what `body` says; returns its exit code."""
    config = tmp_path / "config.yaml"
    config.write_text("{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration}")
    arguments = ["run", "--config", str(config), "--kubeconfig", str(kubeconfig(tmp_path))]
    code = (
        "import asyncio, os, time, bayplan.cli, bayplan.cli.serve\n"
        "from bayplan.config.errors import ConfigurationError\n"
        "class App:\n"
        "    def __init__(self, parts):\n"
        "        self.source = parts.reload.source\n"
        "    async def run(self):\n"
        f"        {body}\n"
        "        return 0\n"
        "bayplan.cli.serve.App = App\n"
        f"bayplan.cli.main({arguments})\n"
    )
    environment = {**os.environ, "PYTHONPATH": "operator"}
    return subprocess.run([sys.executable, "-c", code], env=environment, check=False, timeout=50).returncode


def test_a_thread_that_hangs_does_not_keep_the_process(tmp_path):
    body = "asyncio.get_running_loop().run_in_executor(None, time.sleep, 3600)"
    assert serve_instead(tmp_path, body) == 0


def test_what_was_a_file_at_the_start_is_never_read_as_a_pipe(tmp_path):
    body = (
        "path = self.source.file.path; path.unlink(); os.mkfifo(path); os.open(path, os.O_RDWR)\n"
        "        try: self.source.load()\n"
        "        except ConfigurationError as error: return 7 if 'is no regular file' in str(error) else 8"
    )
    assert serve_instead(tmp_path, body) == 7


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--of", "default-scheduler"], "--of: Forbidden: it says beside whom --shadow decides: give both"),
        (["--shadow", "--leader-elect"], "--leader-elect: Forbidden: a shadow writes nothing, and so no Lease either"),
    ],
)
def test_flags_that_make_no_shadow_are_refused_by_name(capsys, flags, told):
    with pytest.raises(SystemExit) as ended:
        main(["run", *flags])
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"{told}\n"


def test_what_a_shadow_decides_by_is_written_under_the_others_name(tmp_path):
    written = tmp_path / "effective.yaml"
    with pytest.raises(SystemExit) as ended:
        main(["run", "--shadow", "--write-config-to", str(written)])
    assert ended.value.code == 0
    assert "schedulerName: default-scheduler\n" in written.read_text()
