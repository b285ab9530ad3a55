"""What a plugin declares of its answers, so that they can be kept: wrong ones give stale decisions."""

from dataclasses import dataclass
from enum import IntEnum


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
    signs_more: bool = False
    """Whether its signature looks at more than the pod's namespace, labels, owners and spec; if so, every pod's
    signature is worked out by itself."""
    normalize: Normalize = Normalize.NONE
    """How its raw scores become 0..100."""
    without_pre_filter: str = ""
    """What its filter fails with where a profile switches its PreFilter off; "" if it does without."""
    reads_pre_filter_later: bool = False
    """Whether its PreScore, score, Reserve and PreBind fail with that as well."""
    without_pre_score: str = ""
    """What its score fails with where a profile switches its PreScore off; "" if it does without."""

    @property
    def runs_pre_every_cycle(self) -> bool:
        """Whether its PreFilter and PreScore must run in every cycle."""
        return (self.reads if self.pre_reads is None else self.pre_reads) is Reads.CLUSTER
