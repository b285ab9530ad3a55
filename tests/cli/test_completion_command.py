"""`bayplan completion`, and what its scripts are answered: asked as bash, zsh and fish ask."""

import os
import subprocess
import sys

import click
import pytest
from tests.cli.test_main import ROOT, commands, exit_code, found

from bayplan.config.flags import FILE_NAME, FILE_TEXT

ENGINE = {"numpy", "msgspec", "yaml", "aiohttp", "kopf", "kubernetes"}


@pytest.fixture
def complete(monkeypatch, capfd):
    """The words that a shell is given for what was typed; the last one is being typed."""

    def complete(*typed, shell="bash"):
        words = ("bayplan", *typed)
        monkeypatch.setenv("_BAYPLAN_COMPLETE", f"{shell}_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(words))
        # bash and zsh say which word it is, fish what it is.
        monkeypatch.setenv("COMP_CWORD", typed[-1] if shell == "fish" else str(len(words) - 1))
        assert exit_code() == 0
        captured = capfd.readouterr()
        assert captured.err == ""
        return captured.out.splitlines()

    return complete


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["s"], ["plain,simulate", "plain,snapshot"]),
        (["nope"], [""]),
        (["--v"], ["plain,--version"]),
        (["config", ""], ["plain,check", "plain,show", "plain,convert", "plain,schema"]),
        (["config", "sh"], ["plain,show"]),
        (["completion", ""], ["plain,bash", "plain,zsh", "plain,fish"]),
        (["simulate", "--clu"], ["plain,--cluster"]),
        (["simulate", "-o", ""], ["plain,table", "plain,summary", "plain,json"]),
        (["simulate", "--explain", "--output", "j"], ["plain,json"]),
        (["simulate", "--output", "=", "j"], ["plain,json"]),
        (["simulate", "--output=j"], ["plain,json"]),
        (["run", "--logging-format", ""], ["plain,text", "plain,json"]),
        (["run", "--leader-elect", "--conf"], ["plain,--config"]),
        (["config", "check", "a"], ["file,a"]),
        (["config", "check", "-o", ""], ["plain,text", "plain,json"]),
        (["snapshot", "-o", "c"], ["file,c"]),
        (["simulate", "--count", "many", "--cluster", "c"], ["file,c"]),
    ],
)
def test_commands_flags_and_values_are_completed(complete, typed, expected):
    assert complete(*typed) == expected


def test_all_commands_are_there_and_so_are_their_descriptions_where_the_shell_shows_them(complete):
    names = [words[0] for words in commands() if len(words) == 1]
    assert complete("") == [f"plain,{name}" for name in names]
    zsh = complete("", shell="zsh")
    assert list(zip(zsh[::3], zsh[1::3], strict=True)) == [("plain", name) for name in names]
    assert all(zsh[2::3])
    fish = complete("dem", shell="fish")
    assert "demo" in "\n".join(fish)
    assert "Watch a made-up cluster being packed." in "\n".join(fish)


def places():
    """Each command with each of its flags and arguments that is a file's name."""
    return [
        pytest.param(words, each, id=" ".join((*words, each.opts[0])))
        for words in commands()
        for each in found(words).params
        if each.metavar and {"FILE", "[FILE]", "KIND/NAME|FILE", "FOLDER"} & {each.metavar}
    ]


@pytest.mark.parametrize(("words", "parameter"), places())
def test_every_file_name_is_completed_by_the_shell(complete, words, parameter):
    flag = [parameter.opts[0]] if isinstance(parameter, click.Option) else []
    assert complete(*words, *flag, "exam") == ["file,exam"]


@pytest.mark.parametrize("words", commands())
def test_what_is_read_as_a_file_name_is_called_one_in_the_help(words):
    named = [each for each in found(words).params if each.type in (FILE_NAME, FILE_TEXT)]
    assert all(
        each.metavar in {"FILE", "[FILE]", "FOLDER", "KIND/NAME|FILE", "NAMESPACE/NAME|FILE", "TRACE"} for each in named
    )


@pytest.mark.parametrize("typed", [("",), ("s",), ("--h",)])
def test_completing_a_command_loads_none(typed):
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "operator"),
        "_BAYPLAN_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("bayplan", *typed)),
        "COMP_CWORD": "1",
    }
    code = (
        "import sys\nfrom bayplan.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        f"print(sorted({ENGINE} & set(sys.modules)), sorted(each for each in sys.modules if 'bayplan.cli.' in each))"
    )
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    own = ["bayplan.cli.help_sections", "bayplan.cli.kube_scheduler_flags"]
    assert ran.stdout.splitlines()[-1] == f"[] {own}", ran.stderr


@pytest.mark.parametrize("asked", ["bash_complete", "zsh_complete", "fish_complete", "tcsh_complete", "bash", ""])
def test_who_is_no_shell_gets_exit_code_1_and_no_word(monkeypatch, capfd, asked):
    monkeypatch.setenv("_BAYPLAN_COMPLETE", asked)
    monkeypatch.delenv("COMP_WORDS", raising=False)
    assert exit_code("demo") == 1
    assert capfd.readouterr() == ("", "")


def test_bash_completes_by_the_script(tmp_path):
    command = tmp_path / "bayplan"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m bayplan "$@"\n')
    command.chmod(0o755)
    script = """
set -eu
source <(bayplan completion bash)
complete -p bayplan
compopt() { local IFS=" "; echo "compopt $*"; }
ask() { COMP_WORDS=(bayplan "$@"); COMP_CWORD=$#; COMPREPLY=(); _bayplan_completion bayplan; echo "${COMPREPLY[*]-}"; }
ask config ""
ask simulate --output = ""
ask simulate --cluster ""
"""
    ran = subprocess.run(
        ["bash", "--norc", "-c", script],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "operator")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == [
        "complete -o nosort -F _bayplan_completion bayplan",
        "check show convert schema",
        "table summary json",
        "compopt -o default",
        "",
    ]


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("bash", "complete -o nosort -F _bayplan_completion bayplan"),
        ("zsh", "#compdef bayplan"),
        ("fish", "complete --no-files --command bayplan"),
    ],
)
def test_each_script_asks_the_command(capsys, shell, line):
    assert exit_code("completion", shell) == 0
    script = capsys.readouterr().out
    assert line in script
    assert f"_BAYPLAN_COMPLETE={shell}_complete" in script
