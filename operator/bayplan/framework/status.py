"""Outcomes of extension points: codes, reasons, and the verdict when no node fits."""

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class Code(IntEnum):
    """What an extension point says of a pod or of a node (upstream: framework/interface.go)."""

    SUCCESS = 0
    UNSCHEDULABLE = 1
    """Not now; removing pods of lower priority may help."""
    UNSCHEDULABLE_AND_UNRESOLVABLE = 2
    """Not now; preemption cannot help."""
    SKIP = 3
    """The plugin has nothing to say about this pod."""
    ERROR = 4


_GOES_ON = (Code.SUCCESS, Code.SKIP)

Codes = NDArray[np.int8]
"""One `Code` per row asked about, `(rows,) int8`."""


@dataclass(frozen=True, slots=True)
class Status:
    """The outcome of one plugin at one extension point for the whole pod."""

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def ok(self) -> bool:
        """Whether the pod may go on."""
        return self.code in _GOES_ON

    @property
    def message(self) -> str:
        """The reasons as kube-scheduler joins them."""
        return ", ".join(self.reasons)


SUCCESS = Status()
SKIP = Status(Code.SKIP)
SCORES_ZERO = Status(Code.SKIP, ("every node scores 0",))
"""A PreScore's SKIP which saves scoring that would give every node 0: explanations show it as scored."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason of a filter and which of the rows asked about it holds for, `(rows,) bool`."""

    text: str
    holds: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why each node was rejected, counted: enough for the message, the queue and preemption.

    `reasons` counts nodes per reason text. `rejector_plugins` are those whose events may make the pod schedulable.
    `pre_filter_message` is set instead of `reasons` when a PreFilter plugin rejected the pod as a whole.
    """

    node_count: int
    reasons: dict[str, int] = field(default_factory=dict)
    rejector_plugins: frozenset[str] = frozenset()
    pre_filter_message: str = ""
    post_filter_message: str = ""

    @property
    def message(self) -> str:
        """The text of the FailedScheduling event and the condition (upstream: framework/types.go FitError.Error)."""
        if self.node_count == 0:
            return "no nodes available to schedule pods"
        text = f"0/{self.node_count} nodes are available:"
        if self.pre_filter_message:
            text += f" {self.pre_filter_message}."
        elif self.reasons:
            # kube-scheduler sorts the finished phrases as text, so "10 x" comes before "2 y".
            text += f" {', '.join(sorted(f'{count} {reason}' for reason, count in self.reasons.items()))}."
        if self.post_filter_message:
            text += f" {self.post_filter_message}"
        return text
