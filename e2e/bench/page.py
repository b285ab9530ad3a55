"""How soon the page of `bayplan web` is there, and how smoothly it follows: `python -m e2e.bench.page`.

Opens the page of a made-up cluster in a real Chromium, then changes what is requested on its nodes, again and again,
and looks at what the browser says of its own frames. Times are of the clock on the wall: other work on the machine
counts.
"""

import argparse
import asyncio
import json
import random
import sys
from typing import Any

from playwright.sync_api import Page, sync_playwright
from tests.web.chromium import ServedSource, Tab, executable

from bayplan.config.load import default_configuration
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.synthetic import pod_shapes, synthetic_nodes
from bayplan.web.sources import SnapshotSource
from bayplan.web.updates import Updates
from e2e.bench.pod_stream import POOLS, synthetic_pods

_WATCH = """
window.frames = []; window.tasks = []; window.shown = null;
new PerformanceObserver((list) => list.getEntries().forEach((each) => tasks.push(each.duration)))
  .observe({ type: "longtask", buffered: true });
let before = performance.now();
const frame = () => {
  const now = performance.now();
  frames.push(now - before);
  before = now;
  if (shown === null && document.getElementById("map")?.dataset.drawn > 0) shown = now;
  requestAnimationFrame(frame);
};
requestAnimationFrame(frame);
"""


class ChangingSource:
    """Answers as a simulation that has decided does, with other requests on the nodes each time."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self._answers = answers
        self._random = random.Random(1)
        self.changes = 0

    async def summary(self) -> bytes:
        """The same, but for the number of nodes in use."""
        answer = self._answers["summary"]
        for each in answer["packing"]:
            each["nodesUsed"] = each["lowerBound"] + self.changes
        return _encoded(answer)

    async def nodes(self) -> bytes:
        """All nodes, a third of them changed."""
        answer = self._answers["nodes"]
        for name, column in answer["requested"].items():
            whole = answer["allocatable"][name]
            for at in range(self.changes % 3, len(column), 3):
                column[at] = self._random.randrange(whole[at] + 1)
        return _encoded(answer)

    async def queue_page(self, start: int, limit: int) -> bytes:
        """The pods that wait, with one attempt more."""
        answer = self._answers["queue"]
        for each in answer["items"]:
            each["attempts"] += 1
        return _encoded(answer)

    async def decisions(self, after: int, limit: int) -> bytes:
        """A hundred decisions more each time."""
        answer = self._answers["decisions"]
        last = 100 * self.changes
        items = [{**each, "seq": last - number} for number, each in enumerate(reversed(answer["items"]))]
        return _encoded({"last": last, "dropped": False, "items": sorted(items, key=lambda each: each["seq"])[-limit:]})

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - nothing else is asked
        raise AttributeError(name)


def _encoded(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer, separators=(",", ":")).encode()


async def _answers(nodes: int, pods: int) -> dict[str, Any]:
    configuration = default_configuration()
    name = configuration.profiles[0].scheduler_name
    stream = synthetic_pods(pods, pod_shapes(40, 1), seed=1, scheduler_name=name)
    source = SnapshotSource(
        configuration, ClusterObjects(nodes=synthetic_nodes(nodes, POOLS), pods=stream), name="made up"
    )
    updates = Updates(source.inspector, page=source.page)
    await source.run(updates)
    asked = source.inspector
    found = {
        "summary": await asked.summary(),
        "nodes": await asked.nodes(),
        "queue": await asked.queue_page(0, 500),
        "decisions": await asked.decisions(pods, 100),
    }
    asked.thread.stop()
    return {topic: json.loads(answer) for topic, answer in found.items()}


def _measure(page: Page, server: ServedSource, source: ChangingSource, updates: int) -> dict[str, float]:
    page.wait_for_timeout(1000)
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    loaded = {"first paint, ms": paint, "all nodes drawn, ms": page.evaluate("shown")}
    loaded["longest frame while it loads, ms"] = page.evaluate("Math.max(...frames)")
    page.evaluate("frames.length = 0; tasks.length = 0")
    for number in range(updates):
        source.changes += 1
        server.refresh(float(number + 1))
        page.wait_for_timeout(500)
    frames = page.evaluate("[...frames].sort((a, b) => a - b)")
    return loaded | {
        "updates": updates,
        "frames": len(frames),
        "median frame, ms": frames[len(frames) // 2],
        "99th of 100 frames, ms": frames[int(len(frames) * 0.99)],
        "longest frame, ms": frames[-1],
        "frames over 100 ms": sum(each > 100 for each in frames),
        "longest task, ms": page.evaluate("Math.max(0, ...tasks)"),
    }


def main() -> None:
    """Measure, print, and end with 1 if the page broke a rule of its policy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=30_000)
    parser.add_argument("--updates", type=int, default=20)
    given = parser.parse_args()
    answers = asyncio.run(_answers(given.nodes, given.pods))
    source = ChangingSource(answers)
    server = ServedSource(source, {"mode": "live", "title": "made up", "skipped": 0})
    server.refresh(0.0)
    try:
        with sync_playwright() as running:
            found, arguments = executable()
            if found is None:
                sys.exit("no Chromium on this machine")
            browser = running.chromium.launch(executable_path=found, args=arguments)
            tab = Tab(browser, before=_WATCH)
            page = tab.open(server.address)
            figures = _measure(page, server, source, given.updates)
            faults = [*tab.faults, *tab.violations()]
            browser.close()
    finally:
        server.close()
    size = len(_encoded(answers["nodes"])) / 1000
    sys.stdout.write(f"{given.nodes} nodes, an answer of {size:.0f} kB\n")
    for name, value in figures.items():
        sys.stdout.write(f"{name:36}{value:10.1f}\n")
    sys.stdout.write(f"{'violations and errors':36}{len(faults):10}\n")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
