"""Status patches: one at a time for each pod, tried while that may help, and none after the pod's bind began."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Final

import msgspec

from bayplan.api.client import ApiClient
from bayplan.api.response import ApiCall, ApiResponse
from bayplan.scheduler.api_calls import STATUS_PATCH, merged_patch, namespace_of
from bayplan.scheduler.cancellation import Tasks
from bayplan.scheduler.retries import DELAYS_SECONDS, may_pass, send_once, tell_given_up
from bayplan.scheduler.turns import Turn, Turns

_PATIENT_SECONDS = (*DELAYS_SECONDS, 5.0, 10.0, *[30.0] * 19)
"""How long a patient patch waits before each further try: some ten minutes in all."""

MAX_WAITING_PATCHES: Final = 4096
"""So many patches that are not urgent wait in a namespace; what is more is given up."""

Ended = Callable[[bool], None]
"""Called once at the end of a patch: True if it was done, False if it was given up or is obsolete."""


class _Write(msgspec.Struct, frozen=True, gc=False):
    """A status patch and whom to tell of it: an `urgent` one goes before all others, a `patient` one is tried long."""

    call: ApiCall
    ended: list[Ended]
    urgent: bool
    patient: bool

    def then(self, newer: "_Write") -> "_Write":
        """Return one write that does what both would do in turn."""
        call = merged_patch(self.call, newer.call)
        return _Write(call, self.ended + newer.ended, self.urgent or newer.urgent, self.patient and newer.patient)

    def end(self, *, done: bool) -> None:
        """Tell everybody who asked for it how it ended."""
        for ended in self.ended:
            ended(done)


class _Pod(msgspec.Struct, eq=False):
    """The status patches of one pod: one is under way at a time, and all that came since wait as one other.

    `turn` is there while a patch waits for its turn or is under way, `is_sent` from its turn to the end of that try.
    `binds` begin the pod's binds, which wait for that end.
    """

    uid: str
    namespace: str
    waiting: _Write | None = None
    tries: int = 0
    began: float = 0.0
    turn: Turn | None = None
    is_sent: bool = False
    binds: list[Callable[[], object]] = []

    @property
    def rests(self) -> bool:
        """Whether a patient one was given up for a while."""
        return self.turn is None and self.tries > len(DELAYS_SECONDS)

    def drop(self) -> None:
        """Give up what waits."""
        waiting, self.waiting = self.waiting, None
        if waiting is not None:
            waiting.end(done=False)


@dataclass(eq=False)
class PodPatches:
    """Keeps the order of the status patches of each pod, and of its bind after them; the dispatcher relies on it.

    Patches of a pod that wait are one request, with the newer values. Between two tries a patch waits like any other.
    What waits when the pod is about to be bound says why it could not be: that is obsolete, and never sent. `turns`,
    `on_patched`, `on_call` and `sleep` are the dispatcher's.
    """

    client: ApiClient
    turns: Turns
    on_patched: Callable[[bytes], None]
    on_call: Callable[[str, str, float], None]
    sleep: Callable[[float], Awaitable[None]]
    _pods: dict[str, _Pod] = field(default_factory=dict, init=False)
    _pauses: Tasks = field(
        default_factory=lambda: Tasks("pausing patch", "a patch was forgotten unexpectedly"), init=False
    )

    @property
    def unfinished(self) -> int:
        """How many pods have a patch that does not rest for long."""
        return sum(not each.rests for each in self._pods.values())

    @property
    def binds(self) -> int:
        """How many binds wait for a patch that is on its way."""
        return sum(len(each.binds) for each in self._pods.values())

    async def stop(self) -> None:
        """Try nothing again that is not under way."""
        await self._pauses.stop()

    def add(self, uid: str, call: ApiCall, ended: Ended, *, urgent: bool = False, patient: bool = False) -> None:
        """Have a patch wait, in one request with one of the same pod that waits."""
        namespace = namespace_of(call.path)
        if not urgent and self.turns.waiting_in(namespace) >= MAX_WAITING_PATCHES:
            ended(False)
            return
        pod = self._pods.get(uid)
        if pod is None:
            pod = self._pods[uid] = _Pod(uid, namespace)
        write = _Write(call, [ended], urgent, patient)
        pod.waiting = write if pod.waiting is None else pod.waiting.then(write)
        if pod.turn is not None and urgent and not pod.is_sent:
            pod.turn.leave()
            self._start(pod)
        elif pod.turn is None and (pod.rests or not pod.tries):
            self._start(pod)

    def make_way(self, uid: str, bind: Callable[[], object]) -> None:
        """Drop the pod's patches that wait, and begin its bind: now, or at the end of the try that is on its way."""
        pod = self._pods.get(uid)
        if pod is None:
            bind()
            return
        pod.drop()
        if pod.is_sent:
            pod.binds.append(bind)
            return
        del self._pods[uid]
        if pod.turn is not None:
            pod.turn.leave()
        bind()

    def _start(self, pod: _Pod) -> None:
        rank = int(pod.waiting is not None and pod.waiting.urgent)
        pod.turn = self.turns.start(pod.namespace, partial(self._perform, pod), rank)

    async def _perform(self, pod: _Pod, turn: Turn) -> None:
        """Send what waits once; if that may help it waits again, together with what came meanwhile."""
        write = pod.waiting
        if write is None or pod.turn is not turn:
            return  # Its turn had come already as it was dropped, or was given another.
        pod.waiting, pod.is_sent, pod.began = None, True, pod.began or perf_counter()
        pause: float | None = None
        done = False
        try:
            async with turn:
                answer, problem = await send_once(self.client, write.call, turn)
            done = answer is not None and answer.status < 400
            if answer is not None and done:
                self.on_patched(answer.body)
            elif not pod.binds:
                pause = _pause(write, pod.tries, answer)
                if pause is None:
                    tell_given_up(write.call, answer, problem)
        finally:
            pod.turn, pod.is_sent = None, False
            if pause is None:
                self._end(pod, write, done=done)
            else:
                self._put_back(pod, write, pause)

    def _put_back(self, pod: _Pod, write: _Write, pause: float) -> None:
        pod.tries += 1
        if pod.rests:
            self._tell(pod, done=False)
        newer, pod.waiting = pod.waiting, write
        if newer is not None:
            pod.waiting = write.then(newer)
        if newer is not None and pod.rests:
            self._start(pod)
        else:
            self._pauses.start(partial(self._resume, pod, pod.tries, pause))

    async def _resume(self, pod: _Pod, tries: int, pause: float) -> None:
        await self.sleep(pause)
        if self._pods.get(pod.uid) is pod and pod.turn is None and pod.tries == tries:
            self._start(pod)

    def _end(self, pod: _Pod, write: _Write, *, done: bool) -> None:
        self._tell(pod, done=done)
        pod.tries, binds, pod.binds = 0, pod.binds, []
        if pod.waiting is None:
            del self._pods[pod.uid]
        else:
            self._start(pod)
        try:
            write.end(done=done)
        finally:
            for bind in binds:
                bind()

    def _tell(self, pod: _Pod, *, done: bool) -> None:
        self.on_call(STATUS_PATCH, "success" if done else "error", perf_counter() - pod.began)
        pod.began = 0.0


def _pause(write: _Write, tries: int, answer: ApiResponse | None) -> float | None:
    """How long a patch that failed waits for its next try; None if it is given up.

    What admission refuses is tried as often as upstream's (pkg/scheduler/util PatchPodStatus), however patient.
    """
    if answer is not None and not may_pass(write.call, answer):
        return None
    is_patient = write.patient and (answer is None or not answer.is_refused_by_admission)
    delays = _PATIENT_SECONDS if is_patient else DELAYS_SECONDS
    return delays[tries] if tries < len(delays) else None
