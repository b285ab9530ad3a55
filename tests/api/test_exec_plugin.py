"""How an exec plugin is started, and what it may answer."""

import json
from pathlib import Path

import pytest
from tests.api.credential_scene import EXEC_VERSION
from tests.waiting import until

from bayplan.api import token_source
from bayplan.api.errors import CredentialsError
from bayplan.api.kubeconfig import Entry
from bayplan.api.token_source import ExecPlugin


def script(tmp_path: Path, text: str) -> ExecPlugin:
    """Write an exec plugin that is a shell script, and return the source of its tokens."""
    path = tmp_path / "plugin.sh"
    path.write_text(f"#!/bin/sh\ncd {tmp_path}\n{text}\n")
    path.chmod(0o700)
    user = {"exec": {"apiVersion": EXEC_VERSION, "command": str(path)}}
    return ExecPlugin(Entry("users[0].user", tmp_path, user))


GOOD = f"""echo '{{"apiVersion":"{EXEC_VERSION}","kind":"ExecCredential","status":{{"token":"good"}}}}'"""


async def test_an_exec_plugin_is_told_what_is_asked_of_it_and_that_there_is_no_terminal(tmp_path: Path) -> None:
    source = script(tmp_path, f'echo "$KUBERNETES_EXEC_INFO" > asked; cat > typed; {GOOD}')
    assert (await source.issue()).token == "good"
    asked = json.loads((tmp_path / "asked").read_text())
    assert asked == {"apiVersion": EXEC_VERSION, "kind": "ExecCredential", "spec": {"interactive": False}}
    assert (tmp_path / "typed").read_text() == ""


async def test_an_exec_plugin_may_write_as_much_as_it_likes_to_standard_error(tmp_path: Path) -> None:
    source = script(tmp_path, f"yes secret | head -c 1000000 >&2; {GOOD}")
    assert (await source.issue()).token == "good"


async def test_an_exec_plugin_that_does_not_answer_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_source, "PLUGIN_TIMEOUT_SECONDS", 0.5)
    source = script(tmp_path, "echo $$ > number; exec sleep 60")
    with pytest.raises(CredentialsError, match=r"no answer in 0.5 s"):
        await source.issue()
    number = int((tmp_path / "number").read_text())
    await until(lambda: not Path(f"/proc/{number}").exists())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("echo topsecret", "printed no JSON"),
        ("true", "printed no JSON"),
        ("echo '[]'", "printed nothing of client.authentication"),
        ("""echo '{"apiVersion":"v1","status":{"token":"topsecret"}}'""", "printed nothing of client.authentication"),
    ],
)
async def test_what_is_no_credential_is_refused_and_not_repeated(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(CredentialsError, match=problem) as caught:
        await script(tmp_path, text).issue()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "given", [{"args": "topsecret"}, {"args": [7]}, {"env": ["topsecret"]}, {"env": [{"value": "topsecret"}]}]
)
def test_arguments_and_variables_that_no_process_can_have_are_refused(tmp_path: Path, given: dict[str, object]) -> None:
    fields = {"exec": {"apiVersion": EXEC_VERSION, "command": "true", **given}}
    with pytest.raises(CredentialsError, match=r"users\[0\]\.user\.exec: ") as caught:
        ExecPlugin(Entry("users[0].user", tmp_path, fields))
    assert "secret" not in str(caught.value)
