"""The queue against a model that does everything the slow and obvious way."""

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from math import ceil

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule
from tests.queue.scene import COLOUR, FIT, Scene, info, make_profile
from tests.queue_checks import assert_consistent

from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import (
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_CONDITION,
    NODE_TAINT,
    ClusterEvent,
)
from bayplan.queue.queued_pod import QueuedPodInfo, SubQueue

COLOURS = ("red", "blue")
REJECTORS = st.sampled_from([FIT, COLOUR, FIT | COLOUR, frozenset({"Deaf"})])


def colour_of(pod: PodInfo) -> str | None:
    return (pod.pod.metadata.labels or {}).get("colour")


@dataclass
class Expected:
    """What the model knows of a living pod."""

    pod: PodInfo
    version: int = 1
    rejectors: frozenset[str] = frozenset()
    retry_at: float | None = None
    missed: list[tuple[ClusterEvent, frozenset[str]]] = field(default_factory=list)

    @property
    def colour(self) -> str | None:
        return colour_of(self.pod)

    def helped_by(self, event: ClusterEvent, colours: frozenset[str]) -> bool:
        """What the plugins of the scene say, written down a second time."""
        if event in (ASSIGNED_POD_DELETE, NODE_TAINT):
            return "Fit" in self.rejectors
        return event is NODE_ADD and "Colour" in self.rejectors and self.colour in colours


class QueueMachine(RuleBasedStateMachine):
    """Random lives of pods; after each step the queue validates itself and agrees with the model."""

    known = Bundle("known")
    popped = Bundle("popped")

    def __init__(self):
        super().__init__()
        self.scene = Scene(profile=make_profile(shape=colour_of), max_in_unschedulable_seconds=30.0)
        self.queue = self.scene.queue
        self.alive: dict[str, Expected] = {}
        self.in_flight: dict[str, Expected] = {}
        self.gone: set[str] = set()
        self.nominated: dict[str, str] = {}
        self.hopeless: set[tuple[str, int]] = set()
        self.rejected_as: dict[str, tuple[str, int]] = {}
        self.names = 0

    def standing_in(self, *sub_queues: SubQueue) -> dict[str, QueuedPodInfo]:
        found = {uid: self.queue.get(uid) for uid in self.alive}
        return {uid: queued for uid, queued in found.items() if queued is not None and queued.sub_queue in sub_queues}

    def kind_of(self, uid: str) -> tuple[str, int] | None:
        """What pods have in common that any attempt ends alike for; a nominated pod is like no other."""
        pod = self.alive[uid]
        return None if uid in self.nominated else (pod.colour, pod.pod.priority)

    def leaves(self, uid: str) -> None:
        """What was learnt of a kind holds as long as one of the pods it was learnt from."""
        self.alive.pop(uid, None)
        self.gone.add(uid)
        self.rejected_as.pop(uid, None)
        self.hopeless &= set(self.rejected_as.values())

    # Pods.

    @rule(
        target=known,
        priority=st.integers(-1, 1),
        colour=st.sampled_from(COLOURS),
        gates=st.sampled_from([[], [], ["g"]]),
    )
    def add(self, priority, colour, gates):
        self.names += 1
        pod = info(f"p{self.names}", priority=priority, colour=colour, gates=gates)
        self.queue.add(pod)
        self.alive[pod.uid] = Expected(pod)
        return pod.uid

    @rule(uid=known)
    def add_again(self, uid):
        if uid in self.alive:
            self.queue.add(self.alive[uid].pod)

    @rule(uid=known, colour=st.sampled_from(COLOURS), open_gates=st.booleans())
    def update(self, uid, colour, open_gates):
        if uid not in self.alive:
            return
        expected = self.alive[uid]
        before = self.scene.sub_queue(uid)
        expected.version += 1
        gates = [] if open_gates else [gate.name for gate in expected.pod.pod.spec.scheduling_gates or ()]
        expected.pod = info(
            uid, colour=colour, gates=gates, priority=expected.pod.priority, version=str(expected.version)
        )
        self.queue.update(expected.pod)
        if before is SubQueue.GATED:
            assert self.scene.sub_queue(uid) is (SubQueue.GATED if gates else SubQueue.ACTIVE)
        else:
            assert self.scene.sub_queue(uid) is before

    @rule(uid=consumes(known))
    def delete(self, uid):
        with self.room_left_by(uid, to=None):
            self.queue.delete(uid)
            self.leaves(uid)

    # Attempts.

    @rule(target=popped)
    def pop(self):
        active = self.standing_in(SubQueue.ACTIVE)
        backoff = self.standing_in(SubQueue.BACKOFF)
        worth_a_try = {uid: pod for uid, pod in backoff.items() if self.kind_of(uid) not in self.hopeless}
        candidates = active or worth_a_try
        assert self.queue.has_ready() == bool(candidates)
        queued = self.queue.pop()
        if queued is None:
            assert not candidates
            return None
        assert queued.uid not in self.gone, "a deleted pod popped"
        assert not queued.pod_info.pod.spec.scheduling_gates, "a gated pod popped"
        assert queued.pod_info is self.alive[queued.uid].pod, "an outdated object popped"

        def turn(pod: QueuedPodInfo) -> tuple[float, ...]:
            until = () if active else (pod.backs_off_until,)
            since = pod.backs_off_until + 1.0 if pod.consecutive_errors else pod.timestamp
            return (*until, -pod.pod_info.priority, since, pod.sequence)

        assert queued is min(candidates.values(), key=turn)
        expected = self.in_flight[queued.uid] = self.alive[queued.uid]
        expected.missed = []
        return queued

    @rule(
        queued=consumes(popped),
        rejectors=REJECTORS,
        retry_after=st.sampled_from([None, None, 0.0, 2.5, 20.0]),
        ends=st.booleans(),
        as_its_kind=st.booleans(),
    )
    def reject(self, queued, rejectors, retry_after, ends, as_its_kind):
        if queued is None:
            return
        retry_at = None if retry_after is None else self.scene.clock.now + retry_after
        with self.room_left_by(queued.uid, to=None) if ends else nullcontext():
            self.queue.add_unschedulable(
                queued,
                rejector_plugins=rejectors,
                error=False,
                ends_nomination=ends,
                retry_at=retry_at,
                as_its_kind=as_its_kind,
            )
        expected = self.in_flight.pop(queued.uid)
        if queued.uid in self.gone:
            assert self.queue.get(queued.uid) is None
            return
        expected.rejectors = rejectors
        expected.retry_at = retry_at
        helped = any(expected.helped_by(event, colours) for event, colours in expected.missed)
        assert self.scene.sub_queue(queued.uid) is (SubQueue.BACKOFF if helped else SubQueue.UNSCHEDULABLE)
        if as_its_kind and not helped and queued.uid not in self.nominated:
            self.rejected_as[queued.uid] = self.kind_of(queued.uid)
            self.hopeless.add(self.kind_of(queued.uid))
            self.hopeless &= set(self.rejected_as.values())

    @rule(queued=consumes(popped))
    def break_off(self, queued):
        if queued is not None:
            self.break_off_of(queued)

    def break_off_of(self, queued):
        self.queue.add_unschedulable(queued, rejector_plugins=frozenset(), error=True)
        del self.in_flight[queued.uid]
        assert self.scene.sub_queue(queued.uid) is (None if queued.uid in self.gone else SubQueue.ERROR_BACKOFF)

    @rule(queued=consumes(popped), fails=st.booleans())
    def bind(self, queued, fails):
        if queued is None:
            return
        self.queue.begin_bind(queued.uid)
        if fails:
            self.break_off_of(queued)
            return
        with self.room_left_by(queued.uid, to=None):
            self.queue.done(queued.uid)
            del self.in_flight[queued.uid]
            self.leaves(queued.uid)

    # Nominations.

    @contextmanager
    def room_left_by(self, uid, *, to, wake=False):
        """A nomination that ends or moves wakes pods of its priority or lower, itself only if asked, and no others."""
        left = self.nominated.get(uid) not in (None, to)
        ceiling = self.alive[uid].pod.priority if uid in self.alive else None
        waiting = self.standing_in(SubQueue.UNSCHEDULABLE)
        yield
        if left:
            self.hopeless.clear()
        if to is None:
            self.nominated.pop(uid, None)
        else:
            self.nominated[uid] = to

        def hears(other):
            return left and self.alive[other].pod.priority <= ceiling and (wake or other != uid)

        for other, queued in waiting.items():
            if other in self.alive:
                helped = hears(other) and self.alive[other].helped_by(ASSIGNED_POD_DELETE, frozenset())
                assert (queued.sub_queue is not SubQueue.UNSCHEDULABLE) == helped
        for other, expected in self.in_flight.items():
            if other in self.alive and hears(other):
                expected.missed.append((ASSIGNED_POD_DELETE, frozenset()))

    @rule(uid=known, node=st.sampled_from(["n1", "n2"]))
    def nominate(self, uid, node):
        if uid in self.alive:
            with self.room_left_by(uid, to=node):
                self.queue.nominate(self.alive[uid].pod, node)

    @rule(uid=known, wake=st.booleans())
    def withdraw(self, uid, wake):
        with self.room_left_by(uid, to=None, wake=wake):
            self.queue.withdraw(uid, wake=wake)

    @rule(uid=known, node=st.sampled_from(["n1", "n2"]))
    def placed(self, uid, node):
        with self.room_left_by(uid, to=None) if self.nominated.get(uid) != node else nullcontext():
            self.queue.placed(uid, node)
            if self.nominated.get(uid) == node:
                del self.nominated[uid]

    # The world.

    @rule(
        event=st.sampled_from([ASSIGNED_POD_DELETE, NODE_TAINT, NODE_ADD, NODE_CONDITION]),
        colours=st.frozensets(st.sampled_from(COLOURS)),
    )
    def event(self, event, colours):
        waiting = self.standing_in(SubQueue.UNSCHEDULABLE)
        gated = self.standing_in(SubQueue.GATED)
        self.queue.move_all(event, None, colours)
        if event is not NODE_CONDITION:
            self.hopeless.clear()
        for uid, queued in waiting.items():
            helped = self.alive[uid].helped_by(event, colours)
            assert (queued.sub_queue is not SubQueue.UNSCHEDULABLE) == helped
        assert self.standing_in(SubQueue.GATED).keys() == gated.keys()
        for expected in self.in_flight.values():
            expected.missed.append((event, colours))

    @rule(seconds=st.sampled_from([0.25, 0.5, 1.0, 3.7, 40.0]))
    def time_passes(self, seconds):
        self.scene.clock.step(seconds)
        self.flush()

    @precondition(lambda self: self.queue.next_deadline() is not None)
    @rule()
    def wait_for_the_deadline(self):
        deadline = self.queue.next_deadline()
        before = {uid: self.scene.sub_queue(uid) for uid in self.alive}
        self.scene.clock.now = max(self.scene.clock.now, deadline)
        self.flush()
        assert before != {uid: self.scene.sub_queue(uid) for uid in self.alive}, "a deadline for nothing"

    def flush(self):
        now = self.scene.clock.now
        self.queue.flush(now)
        for queued in self.standing_in(SubQueue.BACKOFF, SubQueue.ERROR_BACKOFF).values():
            assert queued.backs_off_until > now
        for uid, queued in self.standing_in(SubQueue.UNSCHEDULABLE).items():
            assert now < queued.timestamp + 30.0
            retry_at = self.alive[uid].retry_at
            assert retry_at is None or now < ceil(retry_at), "a pod whose time has come still waits"
        deadline = self.queue.next_deadline()
        assert deadline is None or deadline > now

    # What always holds.

    @invariant()
    def the_queue_is_consistent(self):
        assert_consistent(self.queue)

    @invariant()
    def no_pod_is_lost_and_none_is_there_twice(self):
        assert self.queue.uids() == self.alive.keys()
        tried = sum(uid in self.alive for uid in self.in_flight)
        assert sum(self.queue.pending().values()) + tried == len(self.alive)

    @invariant()
    def the_metrics_count_what_is_there(self):
        expected: dict[tuple[str, str], int] = {}
        for queued in self.standing_in(*SubQueue).values():
            for plugin in queued.rejector_plugins:
                expected[plugin, "bayplan"] = expected.get((plugin, "bayplan"), 0) + 1
        assert self.scene.metrics.rejected() == expected

    @invariant()
    def nominations_are_those_of_living_pods_with_their_newest_object(self):
        nominator = self.queue.nominator
        found = {pod.uid: node for node in nominator.nodes() for pod in nominator.nominated_pods_for_node(node)}
        assert found == self.nominated
        assert all(nominator.get(uid) is self.alive[uid].pod for uid in found)


QueueMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=60, deadline=None)
TestQueueMachine = QueueMachine.TestCase
