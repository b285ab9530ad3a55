import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from bayplan import __version__
from bayplan.cli import application, main

ROOT = Path(__file__).parents[2]


def exit_code(*arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    return caught.value.code or 0


def python(code, **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "operator")}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=False, **options
    )


def shell(command):
    """`bayplan` with these arguments and redirections."""
    return subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -m bayplan {command}"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "operator")},
        capture_output=True,
        text=True,
        check=False,
    )


def found(command):
    """The command with these words."""
    context, each = click.Context(application), application
    for word in command:
        each = each.get_command(context, word)
    return each


def commands(words=()):
    """The words of each command, and of the commands of those that have some."""
    each = found(words)
    names = each.list_commands(click.Context(each)) if isinstance(each, click.Group) else ()
    return [words, *(below for name in names for below in commands((*words, name)))]


@pytest.mark.parametrize("arguments", [["--help"], ["-h"]])
def test_help_lists_every_command_and_shows_examples(capsys, arguments):
    assert exit_code(*arguments) == 0
    text = capsys.readouterr().out
    assert all(f"  {name} " in text for name in ("run", "simulate", "demo", "config"))
    assert "bayplan simulate --cluster" in text


def test_the_examples_of_the_help_name_files_that_exist(capsys):
    exit_code("--help")
    named = [word for word in capsys.readouterr().out.split() if word.startswith("examples/")]
    assert named
    assert all((ROOT / name).exists() for name in named)


def test_the_version_is_the_packages(capsys):
    assert exit_code("--version") == 0
    assert capsys.readouterr().out == f"bayplan {__version__}\n"


def test_without_a_command_the_help_is_shown_and_that_is_wrong_input(capsys):
    assert exit_code() == 2
    captured = capsys.readouterr()
    assert "Commands:" in captured.out + captured.err


@pytest.mark.parametrize("arguments", [["nope"], ["--nope"], ["simulate"], ["demo", "--nodes", "0"]])
def test_wrong_usage_is_said_on_standard_error_with_exit_code_2(capsys, arguments):
    assert exit_code(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Error: ")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["a\nb"], ["--a\nb"], ["config", "a\x1bb"], ["demo", "a\nb"], ["demo", "\udcff"]]
)
def test_what_was_typed_stays_on_the_line_of_its_error(capsys, arguments):
    assert exit_code(*arguments) == 2
    error = capsys.readouterr().err
    assert (error.count("\n"), error.rstrip("\n").isprintable()) == (1, True)


@pytest.mark.parametrize(("arguments", "meant"), [(["simulte"], "simulate"), (["config", "convrt"], "convert")])
def test_a_command_that_is_nearly_one_is_told_what_was_meant(capsys, arguments, meant):
    assert exit_code(*arguments) == 2
    error = capsys.readouterr().err
    assert f"Did you mean '{meant}'?" in error
    assert "?." not in error


@pytest.mark.parametrize("command", commands())
def test_every_command_has_help_that_ends_with_examples_of_itself(capsys, command):
    assert exit_code(*command, "--help") == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Usage: {' '.join(('bayplan', *command))} ")
    examples = text.split("\nExamples:\n")[1].splitlines()
    assert examples
    assert all(" ".join(("bayplan", *command)) in example for example in examples)


@pytest.mark.parametrize("command", commands())
def test_every_value_of_a_flag_is_named_in_capitals_or_by_the_words_it_may_be(command):
    for parameter in found(command).params:
        if isinstance(parameter, click.Option) and not parameter.is_flag:
            words = parameter.type.choices if isinstance(parameter.type, click.Choice) else {"max"}
            assert parameter.metavar, parameter.opts
            values = [part.rpartition("=")[2] for part in parameter.metavar.split("|")]
            assert all(value in words or value == value.upper() for value in values), parameter.opts


@pytest.mark.parametrize("command", commands())
def test_the_flags_of_every_command_are_described(command):
    assert [each.name for each in found(command).params if not each.help] == []


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["--help"], {"kopf", "numpy", "yaml", "aiohttp", "kubernetes"}),
        (["demo", "--help"], {"kopf", "numpy", "aiohttp", "kubernetes"}),
        (["simulate", "--cluster", "examples/cluster/worked-example.yaml"], {"kopf", "aiohttp", "kubernetes"}),
        (["demo", "--no-live"], {"kopf", "aiohttp", "kubernetes", "numpy.ma"}),
    ],
)
def test_a_command_loads_only_what_it_needs(arguments, unwanted):
    ran = python(
        "import sys\nfrom bayplan.cli import main\n"
        f"try:\n    main({arguments})\nexcept SystemExit as end:\n    assert not end.code\n"
        f"print('loaded:', sorted({unwanted} & set(sys.modules)))"
    )
    assert ran.stdout.endswith("loaded: []\n"), ran.stderr


def test_what_reads_certificates_is_loaded_only_where_https_is_served():
    ran = python("import sys, bayplan.cli.serve\nprint('cryptography.x509' in sys.modules)")
    assert ran.stdout == "False\n", ran.stderr


SIMULATE = "simulate --cluster examples/cluster/worked-example.yaml"


def test_standard_input_that_is_closed_is_a_file_that_cannot_be_read():
    ran = shell("simulate --cluster - <&-")
    assert (ran.returncode, ran.stderr) == (2, "-: cannot be read: Bad file descriptor\n")


def test_without_any_streams_the_exit_code_is_all_that_is_left():
    assert shell(f"{SIMULATE} >/dev/full 2>&1").returncode == 1
    assert shell(f"{SIMULATE} <&- >&- 2>&-").returncode == 1


def test_ctrl_c_ends_with_130_and_without_a_word():
    ran = python(
        "import click, bayplan.cli.demo\n"
        "def interrupted(): raise KeyboardInterrupt\n"
        "bayplan.cli.demo.demo = click.Command('demo', callback=interrupted)\n"
        "from bayplan.cli import main\nmain(['demo'])"
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "")
