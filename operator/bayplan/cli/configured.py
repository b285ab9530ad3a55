"""A configuration that a simulation decides by, and what there is to say about it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bayplan.cli.config import load_checked
from bayplan.cli.feature_gates import without_effect
from bayplan.config.errors import FieldNote, note_lines
from bayplan.config.types import SchedulerConfiguration
from bayplan.simulate.simulator import Simulator


@dataclass(frozen=True, slots=True)
class Configured:
    """A configuration, from a file unless it is the default, with a simulator that has no objects yet."""

    file: Path | None
    configuration: SchedulerConfiguration
    simulator: Simulator
    notes: Sequence[FieldNote]

    def lines(self) -> Iterator[str]:
        """Yield what of it has no effect in a simulation, a line each."""
        yield from note_lines(self.file, self.notes)
        yield from without_effect(self.configuration)
        if self.configuration.extenders:
            yield "extenders are not called in a simulation: decisions are those of the plugins alone"


def configured(file: Path | None, scheduler_name: str | None, feature_gates: Sequence[str]) -> Configured:
    """Load a configuration and make a simulator of it.

    Raises:
        ConfigurationError: with everything that is wrong.
    """
    notes: list[FieldNote] = []
    configuration = load_checked(file, scheduler_name, feature_gates, notes)
    return Configured(file, configuration, Simulator(configuration), notes)
