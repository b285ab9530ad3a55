"""The elector: a contender for one Lease, as steps without any I/O (upstream: client-go tools/leaderelection).

It differs from upstream where that has two leaders at once: a leader that sees another holder stops at once, and does
not try for the rest of its deadline; a Lease that vanished, or was edited by hand, is left to the holder that was seen
until the longest time is up that it could believe in; and what counts is when a renewal was sent, not when it was
answered.
"""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from msgspec.structs import replace

from bayplan.leaderelection.lease import MAX_TRANSITIONS, Lease, LeaseRecord, record_of_holder, released
from bayplan.leaderelection.write_gate import WriteGate

JITTER_FACTOR: Final = 1.2
_LOOKS_A_PERIOD: Final = 5
"""How often a contender reads the Lease in a retry period: so much sooner it sees a renewal, or that it is free."""
_MIN_REQUEST_SECONDS: Final = 1.0
_RELEASE_PAUSE_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """The three durations of an election, in seconds."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    @property
    def request_timeout(self) -> float:
        """How long an answer is waited for: so short that a connection that died leaves time for another."""
        return max(self.renew_deadline / 2, _MIN_REQUEST_SECONDS)


@dataclass(frozen=True, slots=True)
class Read:
    """Get the Lease."""

    timeout: float


@dataclass(frozen=True, slots=True)
class Create:
    """Create the Lease."""

    record: LeaseRecord
    timeout: float


@dataclass(frozen=True, slots=True)
class Update:
    """Write the record into the Lease as it was last seen; to be refused if that changed."""

    lease: Lease
    record: LeaseRecord
    timeout: float


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Announce:
    """Tell the world, without waiting for it to hear."""

    what: Literal["became leader", "stopped leading"]


Step = Read | Create | Update | Pause | Announce


@dataclass(frozen=True, slots=True)
class Missing:
    """The answer that there is no such Lease."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A request that was refused or not answered; what it asked for may have happened all the same."""

    reason: str
    forbidden: bool = False
    """Whether the role does not allow it."""


Answer = Lease | Missing | Problem | None
"""What a step gave: None for one that asks for nothing."""

Steps = Generator[Step, Answer, None]


class LeaseLostError(Exception):
    """This process led and does so no longer; the text says why."""


@dataclass(eq=False, kw_only=True)
class Elector:
    """Contends for a Lease until it leads, and then renews it until it is lost.

    Whoever drives it performs the steps that `contend` yields and sends the answers back; to stop, it leaves that
    generator where it is and performs those of `give_up`. The gate is open while this process leads: from the answer
    to each renewal until `renew_deadline` after that renewal was sent. Another replica waits `lease_duration` from when
    it saw that renewal, so two gates are never open at once while no clock runs `lease_duration / renew_deadline` times
    as fast as another. `clock` is the gate's, in seconds; `now` gives the time that is written for people; `random`
    gives a number between 0 and 1. `on_new_leader` is told of each holder that is seen, "" for nobody.
    """

    identity: str
    timing: LeaseTiming
    gate: WriteGate
    clock: Callable[[], float]
    now: Callable[[], datetime]
    random: Callable[[], float]
    on_new_leader: Callable[[str], None]
    leading: bool = field(default=False, init=False)
    slow_paths: int = field(default=0, init=False)
    """How often a renewal had to read the Lease first."""
    problem: Problem | None = field(default=None, init=False)
    """What keeps it from reading or writing the Lease, None while that works."""
    refused_since: float | None = field(default=None, init=False)
    """Since when it claims a Lease that is free and does not get it, None while that is not so."""
    renewed_at: float = field(default=0.0, init=False)
    """When the renewal was sent that holds now."""
    _seen: Lease | None = field(default=None, init=False)
    _patience: float = field(default=0.0, init=False)
    """How long others are left alone after a change of the record, in seconds."""
    _free_at: float = field(default=-math.inf, init=False)
    """When the Lease may be taken that was seen last."""
    _told: str | None = field(default=None, init=False)

    def contend(self) -> Steps:
        """Try until this process leads, then renew.

        Raises:
            LeaseLostError: it led and does so no longer; the gate is shut.
        """
        # A process that was stopped until the answer came may find its gate closed again.
        while not ((yield from self._try(math.inf)) and self.gate.is_open):
            yield Pause(self._seconds_to_next_look())
        self.leading = True
        yield Announce("became leader")
        try:
            while True:
                yield Pause(self.timing.retry_period)
                yield from self._renew()
        except LeaseLostError:
            self.gate.shut()
            self.leading = False
            yield Announce("stopped leading")
            raise

    def give_up(self, timeout: float) -> Steps:
        """Let another replica lead at once, if this one does; nothing may be written any more.

        What fails is tried again, but in all for no longer than `timeout`, in seconds: the Lease then runs out by
        itself. A server that takes half of that for an answer is not too slow.
        """
        until = self.clock() + timeout
        self.gate.shut()
        if not self.leading or self._seen is None:
            return
        while self._is_holder and (left := until - self.clock()) > 0:
            # A connection that died leaves time for another.
            tried = min(left, timeout / 2)
            answer = yield Update(self._seen, released(self._seen.record, self.now()), tried)
            if not isinstance(answer, Lease):
                # It changed since, or the API server is away.
                yield Pause(_RELEASE_PAUSE_SECONDS)
                answer = yield Read(max(until - self.clock(), 0.0))
            if isinstance(answer, Missing):
                break
            if isinstance(answer, Lease):
                self._see(answer, self.clock())
        # Others wait for the release, and nobody for the Event.
        yield Announce("stopped leading")

    @property
    def holder(self) -> str:
        """Who leads as far as this process has seen; "" for nobody."""
        return self._seen.record.holder_identity if self._seen is not None else ""

    def _renew(self) -> Steps:
        """Renew once, however many tries that takes; LeaseLostError when it is too late."""
        deadline = self.renewed_at + self.timing.renew_deadline
        while (started := self.clock()) < deadline:
            if (yield from self._try(deadline)):
                return
            if not self._is_holder:
                raise LeaseLostError(f"{self.holder!r} holds it")
            # The period counts from the start of the try: one that took long is followed by the next at once.
            pause = started + self.timing.retry_period - self.clock()
            yield Pause(max(0.0, min(pause, deadline - self.clock())))
        reason = f": {self.problem.reason}" if self.problem is not None else ""
        raise LeaseLostError(f"it was not renewed within {self.timing.renew_deadline:g} s{reason}")

    def _try(self, deadline: float) -> Generator[Step, Answer, bool]:
        """Acquire or renew the Lease once if that is possible before the deadline (upstream: tryAcquireOrRenew)."""

        def left() -> float:
            return max(min(self.timing.request_timeout, deadline - self.clock()), 0.0)

        if self._seen is not None and self._is_holder and self._holds():
            # Nobody else writes while it holds: there is no need to read it first.
            if (yield from self._write(Update(self._seen, self._claim(), left()))):
                return True
            if not left():
                # A request without time would hide what was wrong with this one.
                return False
            self.slow_paths += 1
        found = yield from self._ask(Read(left()))
        if isinstance(found, Lease):
            self._observe(found)
        elif not isinstance(found, Missing):
            return False
        # A leader never takes a Lease back; one that is missing may be so without its holder having noticed yet.
        if (self._holds() or self.leading) and not self._is_holder:
            self.refused_since = None
            return False
        claim = self._claim()
        write = Update(found, claim, left()) if isinstance(found, Lease) else Create(claim, left())
        return (yield from self._write(write))

    def _write(self, step: Create | Update) -> Generator[Step, Answer, bool]:
        """Write the claim; whether the API server took it, which makes or keeps this process the leader."""
        sent = self.clock()
        answer = yield from self._ask(step)
        if not isinstance(answer, Lease):
            self.refused_since = sent if self.refused_since is None else self.refused_since
            return False
        self.refused_since = None
        self._see(answer, sent)
        self.renewed_at = sent
        self.gate.open_until(sent + self.timing.renew_deadline)
        return True

    def _ask(self, step: Read | Create | Update) -> Generator[Step, Answer, Answer]:
        """Perform one request, and keep what was wrong with it."""
        answer = yield step
        self.problem = answer if isinstance(answer, Problem) else None
        return answer

    def _claim(self) -> LeaseRecord:
        """The record to write: a leader keeps since when it leads, another counts the transition."""
        seconds = int(self.timing.lease_duration)
        if self._seen is None:
            return record_of_holder(self.identity, seconds, self.now(), transitions=0)
        old = self._seen.record
        if not self._is_holder:
            return record_of_holder(self.identity, seconds, self.now(), transitions=_next_transition(old))
        claim = record_of_holder(self.identity, seconds, self.now(), transitions=old.lease_transitions)
        return replace(claim, acquire_time=old.acquire_time or claim.acquire_time)

    @property
    def _is_holder(self) -> bool:
        return self.holder == self.identity

    def _holds(self) -> bool:
        """Whether the record that was seen last still keeps others from taking the Lease."""
        return self._seen is not None and self._free_at > self.clock()

    def _observe(self, lease: Lease) -> None:
        """Take in what was read; its time starts anew if the record changed, and only then."""
        if self._seen is None or lease.record != self._seen.record:
            self._see(lease, self.clock())
        else:
            self._seen = lease

    def _see(self, lease: Lease, at: float) -> None:
        self._free_at = self._when_free(lease.record, at)
        self._seen = lease
        if self.holder != self._told:
            self._told = self.holder
            self.on_new_leader(self.holder)

    def _when_free(self, record: LeaseRecord, at: float) -> float:
        """Return when a record that was seen at `at` no longer keeps anybody from taking the Lease.

        Whoever edits a Lease by hand does not stop its holder, which goes on until its next renewal. So nothing but a
        release makes the wait shorter than the holder could expect it to be when it renewed last. Renewals may be
        missed between two edits, so it is never shorter than this process's own, which is the holder's as a rule.
        """
        old = self._seen.record if self._seen is not None else None
        if record.is_released if old is None else record.releases(old):
            return -math.inf
        # A longer one counts until the second renewal without it: the first may be an edit.
        is_renewal = old is not None and record.renews(old)
        before = old.lease_duration_seconds if old is not None and is_renewal else self._patience
        self._patience = max(self.timing.lease_duration, before, record.lease_duration_seconds)
        return at + self._patience

    def _seconds_to_next_look(self) -> float:
        pause = self.timing.retry_period / _LOOKS_A_PERIOD * (1.0 + JITTER_FACTOR * self.random())
        return min(pause, self._free_at - self.clock()) if self._holds() else pause


def _next_transition(record: LeaseRecord) -> int:
    """Count one more; after the last number that a Lease takes comes 0, or nobody could ever lead again."""
    return record.lease_transitions + 1 if record.lease_transitions < MAX_TRANSITIONS else 0
