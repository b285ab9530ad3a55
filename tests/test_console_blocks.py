"""What the documents show in console blocks is what one gets.

A block has commands after `$ ` and, where it is shown, what each prints, errors included. A line `...` stands for any
number of lines. The commands of a document run one after the other in a folder of their own, with `examples/` in it.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.console_blocks import Command, blocks_of, commands_of, matches

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    *(
        ROOT / name
        for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "manifests/README.md", "manifests/chart/README.md")
    ),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "tests").rglob("*.md"),
]

NOT_RUN = {
    "bayplan run": "needs a cluster",
    "bayplan explain": "needs a running scheduler; e2e/scenarios/test_explain.py asks one",
    "bayplan queue": "needs a running scheduler; e2e/scenarios/test_explain.py asks one",
    "bayplan web": "serves a page until it is interrupted; tests/web opens it",
    "bayplan snapshot": "needs a cluster; e2e/scenarios/test_snapshot.py takes one",
    "docker ": "needs a container builder and a registry",
    "curl -sk ": "needs a running scheduler",
    "helm ": "needs a cluster; what the chart makes is tested with the real helm in e2e/helm",
    "kind ": "needs a container runtime",
    "kubectl ": "needs a cluster",
    "make ": "runs the checks and tests themselves; that the target exists is checked below",
    "until kubectl ": "needs a cluster",
    "pre-commit ": "is installed by who wants it, and changes the checkout's hooks",
    "python -m e2e.conformance": "runs for minutes on a control plane",
    "python -m e2e.bench": "measures for minutes on a control plane",
    "python -m e2e.gangs": "plays for minutes on control planes",
    "python -m tests.oracle": "records for minutes on control planes",
    "python -m e2e.autoscaler": "measures for an hour on control planes",
    ". .venv/bin/activate": "sets the shell's path, which these tests set themselves",
}
"""How commands begin that are shown and not run, and why."""


def why_not_run(command: Command) -> str | None:
    """The reason in NOT_RUN, None for a command that is run."""
    return next((why for start, why in NOT_RUN.items() if command.text.startswith(start)), None)


ALL = {
    f"{document.relative_to(ROOT)}": commands
    for document in DOCUMENTS
    if (commands := commands_of(document.read_text()))
}
RUN = [name for name, commands in ALL.items() if any(not why_not_run(command) for command in commands)]


@pytest.mark.parametrize("name", RUN)
def test_commands_print_what_the_document_shows(name, tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "COLUMNS": "120",
        "LC_ALL": "C.UTF-8",
    }
    for command in ALL[name]:
        if why_not_run(command):
            continue
        done = subprocess.run(
            ["bash", "-c", command.text],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        where = f"{name}:{command.line}: {command.text}"
        if command.output:
            assert matches(command.output, done.stdout.splitlines()), f"{where}\nprints\n{done.stdout}"
        else:
            assert done.returncode == 0, f"{where}\n{done.stdout}"


def test_every_make_target_shown_exists():
    targets = set(re.findall(r"^([a-z0-9]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    shown = {word[1] for commands in ALL.values() for each in commands if (word := re.match(r"make (\w+)", each.text))}
    assert shown
    assert shown - targets == set()


def test_every_reason_not_to_run_is_needed():
    used = [why for commands in ALL.values() for command in commands if (why := why_not_run(command))]
    assert [start for start, why in NOT_RUN.items() if why not in used] == []


def test_no_command_is_shown_outside_of_a_console_block():
    stray = [
        f"{document.relative_to(ROOT)}:{number}: {line}"
        for document in DOCUMENTS
        for kind, lines in blocks_of(document.read_text())
        for number, line in lines
        if kind in {"", "sh", "bash", "shell"} and re.match(r"(\$ )?(bayplan|kubectl|make|python|docker) ", line)
    ]
    assert stray == []


@pytest.mark.parametrize(
    ("shown", "printed", "equal"),
    [
        (["a"], ["a"], True),
        (["a"], ["a", "b"], False),
        (["a", "..."], ["a", "b", "c"], True),
        (["...", "c"], ["a", "b", "c"], True),
        (["a", "...", "c"], ["a", "c"], True),
        (["a", "...", "b"], ["a", "c"], False),
        (["a.c"], ["abc"], False),
    ],
)
def test_output_is_compared_line_by_line_with_dots_for_any_lines(shown, printed, equal):
    assert matches(tuple(shown), printed) is equal


def test_commands_continue_over_lines_and_carry_files():
    text = "```console\n$ a \\\n    b   # why\nout\n$ cat > f <<END\nx: 1\nEND\n$ c\n```\n$ d\n"
    assert commands_of(text) == [
        Command(2, "a b", ("out",)),
        Command(5, "cat > f <<END\nx: 1\nEND", ()),
        Command(8, "c", ()),
    ]
