"""The arguments of TopologyPlacementGenerator: in kube-scheduler it takes none, so all of them are bayplan's own."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from bayplan.api.selectors import NAME_PATTERN
from bayplan.config.errors import FieldError
from bayplan.config.labels import LABEL_NAME
from bayplan.config.settings import OWN, Rule


class PlacementChoice(StrEnum):
    """Which of several sets of nodes a pod group gets."""

    FEWEST_NODES = "FewestNodes"
    """The one that takes the fewest nodes, and of these the one with the least room left."""
    SCORED = "Scored"
    """The one that scores best with the pods on it, as in kube-scheduler."""


class WhenUnsatisfiable(StrEnum):
    """What becomes of a group that one value of `topologyKey` has no room for."""

    DO_NOT_SCHEDULE = "DoNotSchedule"
    """It waits, as a group does that names a key itself."""
    SCHEDULE_ANYWAY = "ScheduleAnyway"
    """It takes as few values as it can."""


def _check_key(value: str, path: str, owner: object) -> Iterable[FieldError]:
    return LABEL_NAME.check(value, path, owner) if value else ()


_KEY_OR_NONE: Final = Rule({"pattern": f"^(([^/]+/)?{NAME_PATTERN})?$"}, _check_key)


@dataclass(frozen=True, slots=True)
class TopologyPlacementGeneratorArgs:
    """Arguments of TopologyPlacementGenerator, which is on where a profile gives any."""

    topology_key: Annotated[str, OWN, _KEY_OR_NONE] = ""
    """The label in one value of which the pods of a group stand that names no key itself; none by default."""
    when_unsatisfiable: Annotated[WhenUnsatisfiable, OWN] = WhenUnsatisfiable.SCHEDULE_ANYWAY
    """What becomes of a group that one value has no room for."""
    choice: Annotated[PlacementChoice, OWN] = PlacementChoice.SCORED
    """Which of several sets of nodes a group gets."""
