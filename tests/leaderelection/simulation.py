"""Elections in virtual time: contenders whose clocks run as they like, and one API server that keeps their Lease."""

import heapq
import itertools
import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from bayplan.leaderelection.elector import (
    JITTER_FACTOR,
    Announce,
    Create,
    Elector,
    LeaseLostError,
    LeaseTiming,
    Missing,
    Pause,
    Problem,
    Read,
)
from bayplan.leaderelection.lease import LeaseLock, new_lease, read_lease
from bayplan.leaderelection.write_gate import WriteGate

LOCK = LeaseLock("kube-system", "bayplan")
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
DURATION, DEADLINE, PERIOD = 15.0, 10.0, 2.0
LONGEST_LOOK = PERIOD / 5 * (1 + JITTER_FACTOR)
NETWORK = 0.1


@dataclass
class Network:
    """How one request fares: seconds there and back, and whether it or its answer gets lost."""

    there: float = 0.005
    back: float = 0.005
    lost: str = ""  # "request" or "answer"


@dataclass(order=True)
class _Event:
    at: float
    number: int
    happen: object = field(compare=False)


class Cluster:
    """The only clock that is right, the Lease, and everybody who contends for it."""

    def __init__(self):
        self.now = 0.0
        self.document = None
        self.version = 0
        self.contenders = []
        self.is_away = self.refuses_writes = False
        self.most_open = 0
        self.history = []  # (time, holder)
        self.network = lambda _: Network()
        self._events = []
        self._numbers = itertools.count()

    def contender(self, name, **options):
        self.contenders.append(Contender(self, name, **options))
        return self.contenders[-1]

    def at(self, moment, happen):
        heapq.heappush(self._events, _Event(moment, next(self._numbers), happen))

    def run(self, seconds):
        """Let so much time pass."""
        end = self.now + seconds
        while self._events and self._events[0].at <= end:
            event = heapq.heappop(self._events)
            self.now = max(self.now, event.at)
            event.happen()
            self.most_open = max(self.most_open, sum(each.gate.is_open for each in self.contenders))
        self.now = end

    def run_until(self, condition, *, seconds=60.0):
        """Let time pass until it is so, and return how much that was."""
        started = self.now
        while not condition():
            assert self.now - started < seconds, "it never came to that"
            self.run(0.01)
        return self.now - started

    @property
    def spec(self):
        return self.document.get("spec") or {}

    def edit(self, **spec):
        """Somebody changes the Lease by hand."""
        self._store({**self.document, "spec": {**self.spec, **spec}})

    def empty(self):
        """Somebody removes the whole spec."""
        self._store({"metadata": self.document["metadata"]})

    def make_by_hand(self, **spec):
        """Somebody makes the Lease, as a manifest would."""
        self._store({"metadata": {"name": LOCK.name, "namespace": LOCK.namespace}, "spec": spec or None})

    def label(self, **labels):
        self._store({**self.document, "metadata": {**self.document["metadata"], "labels": labels}})

    def delete(self):
        self.document = None

    def answer(self, step):
        """What the API server does with a request."""
        if isinstance(step, Read):
            return Missing() if self.document is None else self._lease()
        return Problem("status 400: BadRequest") if self.refuses_writes else self._write(step)

    def _write(self, step):
        if isinstance(step, Create):
            if self.document is not None:
                return Problem("status 409: AlreadyExists")
            return self._store(json.loads(new_lease(LOCK, step.record)))
        body = json.loads(step.lease.with_record(LOCK, step.record))
        if self.document is None:
            return Problem("status 404: NotFound")
        if body["metadata"]["resourceVersion"] != self.document["metadata"]["resourceVersion"]:
            return Problem("status 409: Conflict")
        return self._store(body)

    def _store(self, document):
        self.version += 1
        self.document = {**document, "metadata": {**document["metadata"], "resourceVersion": str(self.version)}}
        self.history.append((self.now, self.spec.get("holderIdentity", "")))
        return self._lease()

    def _lease(self):
        return read_lease(json.dumps(self.document).encode())


class Contender:
    """A process that contends; its clock runs `rate` times as fast as time, its calendar is `ahead` of everybody's."""

    def __init__(self, cluster, name, *, rate=1.0, ahead=0.0, timing=None, luck=0.5):
        self.cluster, self.name, self.rate = cluster, name, rate
        self._offset = 1000.0 * len(cluster.contenders)
        self.gate = WriteGate(self.clock)
        self.seen, self.said, self.sent = [], [], Counter()
        self.lost = None
        self.ended = False
        self._paused_until = 0.0
        self._turn = 0
        self.elector = Elector(
            identity=name,
            timing=timing or LeaseTiming(),
            gate=self.gate,
            clock=self.clock,
            now=lambda: EPOCH + timedelta(seconds=cluster.now + ahead),
            random=lambda: luck,
            on_new_leader=self.seen.append,
        )
        self._steps = None

    def clock(self):
        return self._offset + self.rate * self.cluster.now

    def start(self):
        self._steps = self.elector.contend()
        self._go_on(self._turn, None)
        return self

    def pause(self, seconds):
        """SIGSTOP, and SIGCONT after so long."""
        self._paused_until = self.cluster.now + seconds

    def kill(self):
        self._turn += 1
        self.ended = True

    def stop(self, seconds=1.0):
        """SIGTERM, with nothing left to write, and so long for the release."""
        if not self.ended:
            self._turn += 1
            self._steps, self._kept = self.elector.give_up(seconds), self._steps
            self._go_on(self._turn, None)

    @property
    def leading(self):
        return self.elector.leading and not self.ended

    def _go_on(self, turn, answer):
        """The answer, or the end of a pause, arrives; only the first one of each turn counts."""
        if turn != self._turn:
            return
        cluster = self.cluster
        if cluster.now < self._paused_until:
            cluster.at(self._paused_until, lambda: self._go_on(turn, answer))
            return
        self._turn = turn = self._turn + 1
        try:
            step = self._steps.send(answer)
        except StopIteration:
            self.ended = True
            return
        except LeaseLostError as error:
            self.ended, self.lost = True, str(error)
            return
        if isinstance(step, Pause):
            assert step.seconds >= 0
            cluster.at(cluster.now + step.seconds / self.rate, lambda: self._go_on(turn, None))
        elif isinstance(step, Announce):
            self.said.append(step.what)
            self._go_on(turn, None)
        else:
            self._send(turn, step)

    def _send(self, turn, step):
        cluster = self.cluster
        self.sent[type(step).__name__] += 1
        network = cluster.network(self)
        cluster.at(
            cluster.now + step.timeout / self.rate, lambda: self._go_on(turn, Problem(f"no answer in {step.timeout} s"))
        )
        if network.lost == "request" or cluster.is_away:
            return

        def arrive():
            if cluster.is_away:
                return
            answer = cluster.answer(step)
            if network.lost != "answer":
                cluster.at(cluster.now + network.back, lambda: self._go_on(turn, answer))

        cluster.at(cluster.now + network.there, arrive)


def removed_and_made_anew(cluster):
    cluster.delete()
    cluster.run(0.05)
    cluster.make_by_hand()


EDITS = {
    "emptied": Cluster.empty,
    "removed and made anew": removed_and_made_anew,
    "shortened": lambda cluster: cluster.edit(leaseDurationSeconds=1),
    "without a duration": lambda cluster: cluster.edit(leaseDurationSeconds=None),
    "without a holder": lambda cluster: cluster.edit(holderIdentity=""),
    "a release in part": lambda cluster: cluster.edit(holderIdentity="", leaseDurationSeconds=1),
    "another holder, and short": lambda cluster: cluster.edit(holderIdentity="somebody", leaseDurationSeconds=1),
    "shortened, as if renewed": lambda cluster: cluster.edit(
        leaseDurationSeconds=1, renewTime="2026-01-01T00:00:00.000000Z"
    ),
}
