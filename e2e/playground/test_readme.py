"""README's commands, typed in a fresh clone in the order in which they stand there, on the playground's cluster."""

import subprocess
from pathlib import Path

import pytest
from tests.console_blocks import Command, commands_of, matches

from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.waiting import wait_until
from e2e.playground.terminals import PlaygroundTerminal, Shell, processes_of, settings_in
from e2e.playground.tour import NAMESPACE

pytestmark = pytest.mark.controlplane

LEFT_OUT = {
    "make image": "needs Docker; what the image is made of is assembled in e2e/image",
    "kind load": "needs Docker",
    "bayplan run": "runs until it is ended; the playground's replicas do",
    "bayplan web": "serves a page until it is ended; tests/web opens it",
    "make test": "is what runs this",
    "make autoscaler": "measures for minutes; e2e/autoscaler tests what it adds up",
}
PLAYGROUND = "make playground"
ACTIVATE = ". .venv/bin/activate"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of what is committed."""
    folder = tmp_path_factory.mktemp("clone") / "bayplan"
    subprocess.run(["git", "clone", "--quiet", f"file://{REPOSITORY}", folder], check=True, stdin=subprocess.DEVNULL)
    return folder


def test_everything_in_the_readme_works_as_it_is_typed(
    control_plane_binaries: None, clone: Path, tmp_path: Path
) -> None:
    commands = [each for each in commands_of((clone / "README.md").read_text()) if not left_out(each)]
    texts = [each.text for each in commands]
    start = texts.index(PLAYGROUND)
    # The first command makes .venv.
    assert texts[0] == "make demo"
    assert texts[1] == ACTIVATE
    for each in commands[:start]:
        type_as_shown(Shell(*([] if each is commands[0] else [ACTIVATE]), directory=clone), each)
    with PlaygroundTerminal(clone, tmp_path, "--minutes 30") as terminal:
        terminal.wait_for()
        shell = Shell(*settings_in(terminal.text), ACTIVATE)
        installed_again = False
        for each in commands[start + 1 :]:
            if each.text.startswith("kubectl delete -k"):
                wait_until(lambda: "default/web to node-" in events(shell), "the pod of README to be placed")
            type_as_shown(shell, each)
            installed_again |= each.text.startswith("kubectl apply -k")
        assert installed_again
        assert [each for each in shell.items("namespaces") if each["metadata"]["name"] == NAMESPACE] == []
        assert terminal.press_ctrl_c() == 0, terminal.text
    assert processes_of(tmp_path) == {}
    assert list(tmp_path.iterdir()) == []


def test_every_command_that_is_left_out_is_in_the_readme() -> None:
    texts = [each.text for each in commands_of((REPOSITORY / "README.md").read_text())]
    assert [start for start in LEFT_OUT if not any(text.startswith(start) for text in texts)] == []


def left_out(command: Command) -> bool:
    return any(command.text.startswith(start) for start in LEFT_OUT)


def type_as_shown(shell: Shell, command: Command) -> None:
    printed = shell.type(command.text)
    if command.output:
        assert matches(command.output, printed.splitlines()), f"{command.text}\nprints\n{printed}"


def events(shell: Shell) -> str:
    return shell.type("kubectl get events --field-selector reason=Scheduled,involvedObject.name=web")
