"""The arguments of ExpectedDuration, a plugin that kube-scheduler does not have."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExpectedDurationArgs:
    """Arguments of ExpectedDuration, which is bayplan's own."""

    owner_label: str = ""
    """The key of a label by whose value pods of a namespace are alike; without it, and without the label, their
    controller says it."""
