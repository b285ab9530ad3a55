"""One soak from the first pod to the last check."""

import asyncio
import itertools
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException

from e2e.controlplane.plane import ControlPlane
from e2e.soak.bad_namespace import BadNamespace, BadRound
from e2e.soak.errands import Errands
from e2e.soak.instances import Instances, Sample
from e2e.soak.kubelets import Kubelets
from e2e.soak.ledger import Latency, Ledger, Tracked
from e2e.soak.node_churn import NodeChurn
from e2e.soak.plan import Plan
from e2e.soak.pod_watch import PodWatch
from e2e.soak.report import Minute, SampleFile
from e2e.soak.restart import ApiServerRestarts
from e2e.soak.token_rotation import TokenRotation
from e2e.soak.users import Users
from e2e.soak.verdict import percentiles
from e2e.soak.workload import Workload, allocatable, plain_names, soak_nodes, tight_name

_TURN_SECONDS = 0.1
_SAMPLE_SECONDS = 5.0
_SETTLED_SECONDS = 120.0
"""So long every pod that fits may take after the last creation; a pod that was tried backs off for ten at most."""
_COMPARED_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Found:
    """All that a soak found out."""

    counts: Counter[str]
    answers: Counter[int]
    skipped: int
    gaps: int
    created_seconds: float
    restarts: list[tuple[float, float]]
    bad_rounds: list[BadRound]
    minutes: list[Minute]
    samples: list[Sample]
    latencies: list[Latency]
    started: float
    broken: list[str]
    lost: list[str]
    differences: dict[str, str]


class Soak:
    """Users, kubelets and administrators against the instances under test; `say` takes a line."""

    def __init__(
        self,
        plane: ControlPlane,
        instances: Instances,
        rotation: TokenRotation,
        plan: Plan,
        *,
        samples: SampleFile,
        say: Callable[[str], None],
    ) -> None:
        self._plan = plan
        self._instances = instances
        self._rotation = rotation
        self._say = say
        self._started = time.monotonic()
        self._ledger = Ledger(allocatable, lifetime=plan.lifetime)
        self._restarts = ApiServerRestarts(plane, self._clock)
        self._alone = asyncio.Lock()
        self._bad_namespace = BadNamespace(plane, plan, self._clock, self._alone)
        self._plane = plane
        self._sample_file = samples
        self._samples: list[Sample] = []
        self._minutes: list[Minute] = []

    def _clock(self) -> float:
        return time.monotonic() - self._started

    async def run(self) -> Found:
        """Goes on for as long as the plan says, has everything settle, and returns what was found."""
        plan, ledger = self._plan, self._ledger
        watch = PodWatch(self._plane.url, self._plane.tls("test-admin"), ledger)
        async with Errands(self._plane.admin_kubeconfig) as errands:
            users = Users(ledger, errands, Workload(plan), seed=1)
            nodes = {each["metadata"]["name"]: each for each in soak_nodes(plan)}
            changing = {name: nodes[name] for name in plain_names(plan)}
            churn = NodeChurn(changing, ledger, errands, users, seed=2)
            kubelets = Kubelets(ledger, errands)
            self._started = time.monotonic()
            always = [
                asyncio.create_task(watch.run(), name="watch"),
                asyncio.create_task(_forever(_TURN_SECONDS, kubelets.turn), name="kubelets"),
                asyncio.create_task(self._look(), name="samples"),
                asyncio.create_task(self._rotation.run(), name="tokens"),
                asyncio.create_task(_forever(_TURN_SECONDS, errands.check), name="errands"),
            ]
            for_a_while = [
                asyncio.create_task(self._on_the_beat(plan.rate, users.create), name="creations"),
                asyncio.create_task(_forever(_TURN_SECONDS, users.delete_expired), name="deletions"),
                asyncio.create_task(_forever(1 / plan.resize_rate, users.resize), name="resizes"),
                asyncio.create_task(_forever(plan.node_change_seconds, churn.change), name="node changes"),
            ]
            restart = asyncio.create_task(self._restart(), name="restart")
            bad_namespace = asyncio.create_task(self._bad_namespace.run(), name="bad namespace")
            everything = [*always, *for_a_while, restart, bad_namespace]
            ended, _ = await asyncio.wait(everything, timeout=plan.seconds, return_when=asyncio.FIRST_EXCEPTION)
            _raise_first(ended)
            created_seconds = self._clock()
            await _cancel(for_a_while)
            await restart
            await bad_namespace
            await self._settle(churn, always)
            lost = [f"{each.name} ({each.kind})" for each in self._lost()]
            differences = await self._compare() if not lost else {}
            await _cancel(always)
        return Found(
            counts=ledger.counts,
            answers=errands.answers,
            skipped=errands.skipped,
            gaps=watch.gaps,
            created_seconds=created_seconds,
            restarts=self._restarts.times,
            bad_rounds=self._bad_namespace.rounds,
            minutes=self._minutes,
            samples=self._samples,
            latencies=ledger.latencies,
            started=self._started,
            broken=ledger.broken,
            lost=lost,
            differences=differences,
        )

    def close(self) -> None:
        """Ends what outlives `run`, once the control plane has ended."""
        self._restarts.close()
        self._bad_namespace.close()

    async def _on_the_beat(self, rate: float, act: Callable[[], None]) -> None:
        beat = 0
        while True:
            await asyncio.sleep(max(0.0, beat / rate - self._clock()))
            act()
            beat += 1

    async def _restart(self) -> None:
        for moment in self._plan.restarts_at:
            await asyncio.sleep(max(0.0, moment - self._clock()))
            async with self._alone:
                self._say("the API server is restarted")
                seconds = await self._restarts.restart()
            self._say(f"the API server is ready again after {seconds:.1f} s")

    async def _look(self) -> None:
        """Samples every process every few seconds, starts what ended, and says a line each minute."""
        before: Counter[str] = Counter()
        bound = 0
        for look in itertools.count(1):
            await asyncio.sleep(max(0.0, look * _SAMPLE_SECONDS - self._clock()))
            self._instances.start_ended(self._clock())
            samples = await asyncio.to_thread(self._instances.sample, self._clock)
            self._sample_file.write(samples)
            self._samples += samples
            if look * _SAMPLE_SECONDS % 60 == 0:
                counts = Counter(self._ledger.counts)
                latencies = self._ledger.latencies
                minute = Minute(
                    minute=int(look * _SAMPLE_SECONDS // 60),
                    counts={what: counts[what] - before[what] for what in counts},
                    live=len(self._ledger.pods),
                    unbound=len(self._ledger.unbound),
                    latency=percentiles(latencies[bound:]),
                    samples=samples,
                )
                before, bound = counts, len(latencies)
                self._minutes.append(minute)
                self._say(minute.line())

    def _lost(self) -> list[Tracked]:
        return [*self._ledger.lost(), *self._ledger.waiting_that_fit(map(tight_name, range(self._plan.tight_nodes)))]

    async def _settle(self, churn: NodeChurn, always: list[asyncio.Task[None]]) -> None:
        """Has nodes be as they were, and waits until every pod that fits is bound, or too long."""
        deadline = self._clock() + _SETTLED_SECONDS
        restored = False
        while self._clock() < deadline and not (restored and not self._lost()):
            restored = churn.restore()
            ended, _ = await asyncio.wait(always, timeout=1.0, return_when=asyncio.FIRST_EXCEPTION)
            _raise_first(ended)

    async def _compare(self) -> dict[str, str]:
        """Asks every instance whether its cache equals the API server's content; what it says, empty if so."""
        found = {}
        for name, process in list(self._instances.running.items()):
            deadline = self._clock() + _COMPARED_SECONDS
            text = "no answer"
            while text and self._clock() < deadline:
                await asyncio.sleep(2.0)
                text = await asyncio.to_thread(partial(_differences, process.get))
            found[name] = text
        return found


def _differences(get: Callable[[str], tuple[int, str]]) -> str:
    try:
        status, text = get("/debug/cache")
    except (OSError, HTTPException) as error:
        return repr(error)
    if status != 200:
        return f"{status} {text[:300]}"
    return "" if not json.loads(text)["differences"] else text[:1000]


async def _forever(seconds: float, act: Callable[[], object]) -> None:
    while True:
        await asyncio.sleep(seconds)
        act()


def _raise_first(tasks: set[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.result()


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
