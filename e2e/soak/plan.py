"""How long, how much, and when: every other module is told by this."""

from dataclasses import dataclass

FILLERS_PER_NODE = 4
"""How many pods of low priority fill a small node, or one of high priority and one of low."""
_LONG_MINUTES = 30
_RESTART_SECONDS = 20.0
"""For a restart of the API server, and for everybody to be back."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes and rates of a soak; rates are a second, times are seconds unless they say minutes."""

    minutes: float = 60.0
    nodes: int = 1000
    tight_nodes: int = 20
    """Small nodes besides, which pods of low priority fill and pods of high priority take from them."""
    rate: float = 100.0
    lifetime: float = 60.0
    """How long a pod runs; one that is never bound is deleted at that age."""
    instances: int = 2
    hostile_rate: float = 1.0
    resize_rate: float = 2.0
    node_change_seconds: float = 2.0
    bad_pods: int = 200
    """How many wait at a time in a namespace whose webhook fails their binds; 0 for no such namespace."""

    @property
    def filler_rate(self) -> float:
        """Half as many pods again as the small nodes have room for, so that some always wait."""
        return 1.5 * FILLERS_PER_NODE * self.tight_nodes / self.lifetime

    @property
    def preemptor_rate(self) -> float:
        """As many pods as six of ten small nodes have room for, so that each finds one to make room on."""
        return 0.6 * self.tight_nodes / self.lifetime

    @property
    def seconds(self) -> float:
        return self.minutes * 60

    @property
    def restarts_at(self) -> tuple[float, ...]:
        """When the API server is restarted: while memory settles, and in the middle.

        The lists that follow a restart make a process larger once. After the first one that is so, and what further
        ones add is seen. In a run of minutes the second comes at the end, when the leader was judged that it may cost
        its Lease.
        """
        return (self.settle_minutes * 60 / 2, self.seconds / 2 if self.is_long else self.seconds - 25)

    @property
    def bad_seconds(self) -> float:
        """How long that webhook fails in one way; it is well as long after each, or longer."""
        return 60.0 if self.is_long else 20.0

    @property
    def bad_rounds_at(self) -> tuple[float, ...]:
        """When that webhook begins to fail: not while the API server restarts, which would be no fault of its own."""
        length = 2 * self.bad_seconds
        rounds: list[float] = []
        began = self.bad_seconds
        while self.bad_pods and began + length <= self.seconds:
            restarts = [moment for moment in self.restarts_at if began - _RESTART_SECONDS < moment < began + length]
            if not restarts:
                rounds.append(began)
            began = restarts[0] + _RESTART_SECONDS if restarts else began + length
        return tuple(rounds)

    @property
    def is_long(self) -> bool:
        """Whether memory has the time to settle for ten minutes before it is judged."""
        return self.minutes >= _LONG_MINUTES

    @property
    def settle_minutes(self) -> float:
        """From the start of a process, or of its term as leader, until its memory is judged."""
        return 10.0 if self.is_long else 2.0

    @property
    def growth_limit(self) -> float:
        """The share by which resident memory may grow after that.

        A run of minutes is too short for less: what a process keeps of pod shapes, up to a bound, still grows.
        """
        return 0.05 if self.is_long else 0.10
