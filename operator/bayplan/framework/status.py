"""What plugins answer, what they declare of it so that it can be kept, and what they want done before a bind."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.api.response import ApiCall, ApiResponse


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

    @property
    def message(self) -> str:
        """What users are told of it (upstream: framework/types.go FitError.Error)."""
        if self.node_count == 0:
            return "no nodes available to schedule pods"
        text = f"0/{self.node_count} nodes are available:"
        if self.pre_filter_message:
            text += f" {self.pre_filter_message}."
        elif self.reasons:
            # kube-scheduler sorts the finished phrases as text, so "10 x" comes before "2 y".
            text += f" {', '.join(sorted(f'{count} {reason}' for reason, count in self.reasons.items()))}."
        return text


class Reads(IntEnum):
    """What the answer for a row depends on besides the pod: says when it must be asked for again."""

    NODE = 0
    """The row's node object."""
    USAGE = 1
    """The row's node object and the pods on it."""
    NODES = 2
    """All node objects."""
    CLUSTER = 3
    """Anything: nodes and pods anywhere; asked again in every cycle."""


class Normalize(IntEnum):
    """How raw scores become 0..100 (upstream: plugins/helper/normalize_score.go)."""

    NONE = 0
    """They are 0..100 already."""
    DEFAULT = 1
    """`100 * score / max` over the feasible nodes."""
    REVERSE = 2
    """`100 - 100 * score / max`; all 100 when the maximum is 0."""
    CUSTOM = 3
    """The plugin's own `normalize_score`."""


@dataclass(frozen=True, slots=True)
class Traits:
    """Says when a plugin must be run again; every plugin class has one as `traits`. Gains: docs/adr/0013."""

    reads: Reads = Reads.NODE
    """What its filter and score depend on. A filter that reads USAGE rejects no row less for having more pods."""
    pre_reads: Reads | None = None
    """What its PreFilter and PreScore depend on; as `reads` if None. Below CLUSTER they run once an evaluation."""
    reads_pods: bool = True
    """Whether its filter reads more of a row's usage than `requested` and `pod_count`; if not, preemption tries many
    nodes at once on these columns."""
    reads_feasible: bool = True
    """Whether its PreScore looks at `feasible`; if not, it is not always given them."""
    asked_late: bool = False
    """Whether its filter, which reads CLUSTER, is asked only about rows that no filter before it rejects, as it is
    dear. No other of its methods finds anything out about other rows."""
    signs_more: bool = False
    """Whether its signature looks at more than the pod's namespace, labels, owners and spec; if so, every pod's
    signature is worked out by itself."""
    signs_less: bool = False
    """Whether its signature says that the pod has claims or disks and not which: it may reject pods that are alike
    otherwise."""
    normalize: Normalize = Normalize.NONE
    """How its raw scores become 0..100."""
    without_pre_filter: str = ""
    """What its filter fails with where a profile switches its PreFilter off; "" if it does without."""
    reads_pre_filter_later: bool = False
    """Whether its PreScore, score, Reserve and PreBind fail with that as well."""
    scores_what_it_found: bool = False
    """Whether it scores 0 wherever its PreFilter left nothing under its name in the state; then it is not asked."""
    without_pre_score: str = ""
    """What its score fails with where a profile switches its PreScore off; "" if it does without."""

    @property
    def runs_pre_every_cycle(self) -> bool:
        """Whether its PreFilter and PreScore must run in every cycle."""
        return (self.reads if self.pre_reads is None else self.pre_reads) is Reads.CLUSTER


@dataclass(frozen=True, slots=True)
class Notice:
    """An Event about the pod."""

    kind: Literal["Normal", "Warning"]
    reason: str
    action: str
    note: str


_FIRST_PAUSE_SECONDS: Final = 0.01
_MAX_PAUSE_SECONDS: Final = 1.0
"""kube-scheduler looks once a second at volumes and every five at devices; looking sooner at first costs little."""


class EffectError(Exception):
    """An exchange failed, and the bind with it; the text is the user's."""


Conversation = Generator[ApiCall | Notice | float, ApiResponse | None, None]
"""Yields requests, to each of which it is sent the answer, None if there is none; Events; and seconds to wait for."""


def wait_until(
    holds: Callable[[], bool], seconds: float, about: str, error: type[EffectError] = EffectError
) -> Generator[float, object, None]:
    """Have a conversation wait until something holds, which is asked again after ever longer pauses.

    `holds` reads only what the listers have, and must be cheap.

    Raises:
        EffectError: it took longer than so many seconds.
    """
    waited, pause = 0.0, _FIRST_PAUSE_SECONDS
    while not holds():
        if waited >= seconds:
            raise error(f"{about}: context deadline exceeded")
        pause = min(pause, seconds - waited)
        yield pause
        waited += pause
        pause = min(2 * pause, _MAX_PAUSE_SECONDS)


@dataclass(frozen=True, slots=True)
class Exchange:
    """What is written and waited for, of which each step depends on the answers before; `about` names what it is for.

    It may end after any answer, when the pod is not wanted any more or the process ends, and is then closed. Where
    nothing is written, as in simulations, `assume` brings about what it would have. One that `waits` for others may
    take minutes.
    """

    begin: Callable[[], Conversation]
    assume: Callable[[], None]
    about: str
    waits: bool = False


Afterwards = Callable[[Exchange], None]
"""Takes exchanges that no bind waits for, from plugins at any time."""


class ResourceScore(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """What one resource of one node adds to a score: use before and after the pod, in milli-CPU, bytes or counts.

    `score` is 0..100 and `of_ten` its point on the shape's own scale, where one is configured. The weight is that
    among the resources of the same strategy. Of `after`, so much is `assumed` for containers that ask for none, as
    kube-scheduler's scores do: 100m of cpu and 200Mi of memory for each.
    """

    resource: str
    before: int
    after: int
    allocatable: int
    score: int
    weight: int
    of_ten: int | None = None
    assumed: int = 0
