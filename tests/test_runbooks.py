"""The commands of the runbooks find what they look for; e2e/scenarios/test_alerts.py has the alerts fire."""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
RUNBOOKS = sorted((REPOSITORY / "docs/runbooks").glob("Bayplan*.md"))
EVENT_FIELDS = {"reason", "involvedObject.name"}
"""What the runbooks have `kubectl get events` select by; events.k8s.io calls the second one otherwise."""
UNREADABLE = {
    "controller/watches.py": "object cannot be read kind=",
    "scheduler/event_handlers.py": "node left out node=",
    "scheduler/pending_pods.py": "pod left out pod=",
}
"""What is logged of an object that is left out, and where."""


def commands(runbook: Path) -> list[str]:
    return re.findall(r"^\$ (kubectl .*)$", runbook.read_text(), re.MULTILINE)


@pytest.mark.parametrize("source", UNREADABLE)
def test_every_object_that_is_left_out_is_found_in_the_log(source):
    (command,) = (each for each in commands(REPOSITORY / "docs/runbooks/BayplanObjectsLeftOut.md") if " logs " in each)
    assert UNREADABLE[source] in (REPOSITORY / "operator/bayplan" / source).read_text()
    assert re.search(command.partition("grep -E '")[2].rstrip("'"), UNREADABLE[source])


@pytest.mark.parametrize("runbook", RUNBOOKS, ids=lambda path: path.stem)
def test_the_api_server_takes_the_commands_of_a_runbook(runbook):
    """It refuses fields that none is selected by, and kubectl shows nothing if one of several kinds is unknown."""
    for command in commands(runbook):
        if re.search(r"get events( |$)", command):
            assert set(re.findall(r"--field-selector[ =]([\w.]+)=", command)) <= EVENT_FIELDS
        kinds = re.search(r" get (\S*podgroups\S*)", command)
        assert kinds is None or "," not in kinds[1]
