"""What a scheduler made of scenarios, as files: a family each, with every run that came out differently."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.oracle.gangs.scenario import Object, Scenario

DATA = Path(__file__).with_name("data")


@dataclass(frozen=True, slots=True)
class PodState:
    """A pod at rest: its node, its condition PodScheduled, and what it was told so far, sorted.

    `nominated` is the node that it is nominated to. `events` are the texts of FailedScheduling, and of the condition.
    """

    node: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    nominated: str = ""
    events: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupState:
    """The condition PodGroupInitiallyScheduled of a group at rest, and whether it was ever True."""

    status: str = ""
    reason: str = ""
    message: str = ""
    was_true: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What there is at one rest, by name; what has gone is missing."""

    pods: dict[str, PodState] = field(default_factory=dict)
    groups: dict[str, GroupState] = field(default_factory=dict)


Run = tuple[Outcome, ...]
"""The outcomes of one run of a scenario, one for each rest."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The runs of one scenario that differ; `digest` is of the steps they were made with."""

    digest: str
    runs: tuple[Run, ...]

    @classmethod
    def of(cls, scenario: Scenario, runs: list[Run]) -> "Recorded":
        """Returns the recording of a scenario, each way that it went once."""
        return cls(scenario.digest(), tuple(run for index, run in enumerate(runs) if run not in runs[:index]))


@dataclass(frozen=True, slots=True)
class Recording:
    """A family's file: which Kubernetes decided, and its scenarios by name."""

    kubernetes: str
    scenarios: dict[str, Recorded]


def write(path: Path, recording: Recording) -> None:
    """Writes a family's recording, a scenario a line and without empty fields; equal recordings are equal files."""
    scenarios = {
        name: {"digest": each.digest, "runs": [[_sparse(outcome) for outcome in run] for run in each.runs]}
        for name, each in recording.scenarios.items()
    }
    lines = [f"{json.dumps(name)}: {json.dumps(each, sort_keys=True)}" for name, each in sorted(scenarios.items())]
    body = ",\n".join(lines)
    path.write_text(f'{{"kubernetes": {json.dumps(recording.kubernetes)}, "scenarios": {{\n{body}\n}}}}\n')


def read(path: Path) -> Recording:
    """Reads what `write` wrote."""
    document = json.loads(path.read_text())
    scenarios = {
        name: Recorded(each["digest"], tuple(tuple(map(_outcome, run)) for run in each["runs"]))
        for name, each in document["scenarios"].items()
    }
    return Recording(document["kubernetes"], scenarios)


def _sparse(outcome: Outcome) -> Object:
    kinds: Object = asdict(outcome)
    return {
        kind: {name: {key: value for key, value in state.items() if value} for name, state in states.items()}
        for kind, states in kinds.items()
        if states
    }


def _outcome(document: Object) -> Outcome:
    pods = {
        name: PodState(**{**state, "events": tuple(state.get("events", ()))})
        for name, state in document.get("pods", {}).items()
    }
    groups = {name: GroupState(**state) for name, state in document.get("groups", {}).items()}
    return Outcome(pods, groups)
