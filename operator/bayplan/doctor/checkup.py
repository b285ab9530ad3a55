"""All checks, in the order in which they are told."""

from collections.abc import Sequence
from typing import Final

from bayplan.doctor.configuration import outvoted, scarce_without_weight, strategy
from bayplan.doctor.finding import Check, Finding, Patient
from bayplan.doctor.surroundings import consolidation, descheduling, kept_nodes
from bayplan.doctor.workloads import (
    guests_on_devices,
    misspelled_schedulers,
    never_disrupted,
    stale_nominations,
    unnamed_profiles,
    without_controller,
    without_requests,
)

CHECKS: Final[Sequence[Check]] = (
    unnamed_profiles,
    misspelled_schedulers,
    strategy,
    outvoted,
    scarce_without_weight,
    without_controller,
    without_requests,
    guests_on_devices,
    never_disrupted,
    stale_nominations,
    consolidation,
    kept_nodes,
    descheduling,
)


def findings(patient: Patient) -> list[Finding]:
    """Return what all checks find; each asks the simulation for itself what its fix would bring."""
    return [finding for check in CHECKS for finding in check(patient)]
