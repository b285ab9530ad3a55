"""What questions cost a scheduler that decides meanwhile: `python -m e2e.bench.questions`.

A scheduler in memory, without an API server, decides on one event loop, a pod at a turn, while one question after the
other is asked. Told are the CPU time of the copy that is made on the loop, that of the thread that works it out,
and by the clock on the wall how long an answer takes and how long the loop waited for its next turn. Others on the
machine disturb the latter two.

The first line compares decisions of which note is taken with those of which none is, in turns of a hundred.
"""

import argparse
import asyncio
import gc
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from tests.builders import make_node, make_pod, make_pod_info
from tests.live.live_scene import LiveScene, pod_body

from bayplan.controller.app import COLLECTION_THRESHOLDS
from bayplan.live.inspector import AnswerThread

_ROW = "{:24}{:>10}{:>10}{:>12}{:>14}{:>12}\n"
_HEADER = ("asked", "copy ms", "work ms", "answer ms", "wait p99 ms", "longest ms")
_TURN = 100
_ZONE = "topology.kubernetes.io/zone"

Question = Callable[[], Awaitable[bytes]]
T = TypeVar("T")


class _Measured(AnswerThread):
    """Takes the CPU time of copies and of what is done with them, in seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.copies: list[float] = []
        self.works: list[float] = []

    async def answer(self, copy: Callable[[], T], work: Callable[[T], bytes]) -> bytes:
        """As in AnswerThread."""

        def copied() -> T:
            began = time.thread_time()
            made = copy()
            self.copies.append(time.thread_time() - began)
            return made

        def worked(made: T) -> bytes:
            began = time.thread_time()
            told = work(made)
            self.works.append(time.thread_time() - began)
            return told

        return await super().answer(copied, worked)


def _scene(nodes: int, pods_a_node: int, pending: int) -> Any:  # noqa: ANN401 - tests are not typed
    scene: Any = LiveScene()  # type: ignore[no-untyped-call]
    scene.check = lambda: None
    for number in range(nodes):
        scene.nodes.on_add(
            make_node(f"n{number}", cpu="32", memory="128Gi", pods=110, labels={_ZONE: f"z{number % 3}"})
        )
    for number in range(nodes * pods_a_node):
        labels = {"app": f"a{number % 50}"}
        node = f"n{number % nodes}"
        scene.cache.set_pod(make_pod_info(f"r{number}", cpu="2500m", memory="8Gi", node=node, labels=labels))
    for number in range(pending):
        scene.pending.changed(make_pod(f"p{number}", uid=f"p{number}", cpu="10m", memory="16Mi"))
    scene.pending.changed(make_pod("large", uid="large", cpu="64", priority=-5))
    gc.collect()
    gc.freeze()
    return scene


def _questions(scene: Any) -> dict[str, Question | None]:  # noqa: ANN401 - as above
    body: Callable[..., object] = pod_body
    asked, inspector = json.dumps(body()).encode(), scene.inspector
    spread = {"maxSkew": 1, "topologyKey": _ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    rules = [{**spread, "labelSelector": {"matchLabels": {"app": "a1"}}}]
    spreading = json.dumps(body(topologySpreadConstraints=rules)).encode()
    return {
        "none": None,
        "summary": inspector.summary,
        "nodes": inspector.nodes,
        "queue": lambda: inspector.queue_page(0, 100),
        "decisions": lambda: inspector.decisions(0, 500),
        "explain, it fits": lambda: inspector.explanation("default", "p9"),
        "explain, it does not": lambda: inspector.explanation("default", "large"),
        "simulate": lambda: inspector.simulation(asked, ""),
        "simulate, count=max": lambda: inspector.simulation(asked, "max"),
        "simulate, spreading": lambda: inspector.simulation(spreading, "200"),
    }


async def _measure(scene: Any, question: Question | None, seconds: float) -> Sequence[float]:  # noqa: ANN401 - as above
    """Ask for so long, and give the figures of a row, in seconds."""
    waits: list[float] = [0.0]
    answers: list[float] = [0.0]
    scene.inspector.thread = measured = _Measured()
    ends = time.perf_counter() + seconds

    async def decide() -> None:
        before = time.perf_counter()
        while before < ends:
            waits.append(time.perf_counter() - before)
            scene.scheduler.schedule_one()
            before = time.perf_counter()
            await asyncio.sleep(0)

    deciding = asyncio.create_task(decide())
    while question is not None and time.perf_counter() < ends:
        began = time.perf_counter()
        await question()
        answers.append(time.perf_counter() - began)
    await deciding
    waits.sort()
    middle = [statistics.median(each or [0.0]) for each in (measured.copies, measured.works, answers)]
    return [*middle, waits[int(len(waits) * 0.99)], waits[-1]]


def _forget(*_: object) -> None:
    """Take no note of a decision."""


def _noted(scene: Any, decisions: int) -> tuple[float, float]:  # noqa: ANN401 - as above
    """CPU microseconds of a decision without a note, and what a note adds: medians over turns."""
    decisions_of_late, note = scene.scheduler.decisions, scene.scheduler.decisions.placed
    taken: tuple[list[float], list[float]] = [], []
    for turn in range(decisions // _TURN):
        decisions_of_late.placed = note if turn % 2 else _forget
        began = time.thread_time()
        for _ in range(_TURN):
            scene.scheduler.schedule_one()
        taken[turn % 2].append((time.thread_time() - began) / _TURN * 1e6)
    decisions_of_late.placed = note
    return statistics.median(taken[0]), statistics.median(b - a for a, b in zip(*taken, strict=False))


async def _ask_all(scene: Any, seconds: float) -> None:  # noqa: ANN401 - as above
    sys.stdout.write(_ROW.format(*_HEADER))
    for name, question in _questions(scene).items():
        figures = await _measure(scene, question, seconds)
        sys.stdout.write(_ROW.format(name, *(f"{each * 1e3:.1f}" for each in figures)))


def main() -> int:
    """Measure, and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods-a-node", type=int, default=10)
    parser.add_argument("--pending", type=int, default=30_000)
    parser.add_argument("--seconds", type=float, default=3.0, help="for each question")
    options = parser.parse_args()
    scene = _scene(options.nodes, options.pods_a_node, options.pending)
    gc.disable()
    plain, added = _noted(scene, 10_000)
    gc.enable()
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    sys.stdout.write(f"a decision: {plain:.1f} us of CPU, and {added:.2f} us to take note of it\n\n")
    asyncio.run(_ask_all(scene, options.seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
