"""Random rounds of gangs that compete for room, watched for gangs that run in part: `python -m e2e.gangs.rounds`.

Each round is a few nodes and two to six gangs of the CRD, of two to sixteen members, with room for some of them. All
comes at once and in any order. A gang may run in part for two seconds, which binds take, and not at the end. Several
rounds are played at a time, each in a namespace and on nodes of its own.
"""

import argparse
import itertools
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.objects import node
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.recorder import PodEvent, PodRecorder
from e2e.controlplane.waiting import wait_until
from e2e.gangs.objects import GROUPS, group, install_crd, member
from e2e.gangs.wholeness import Gang, longest, parts

ALLOWED_SECONDS = 2.0
_QUIET_SECONDS = 1.5
_LONGEST_SECONDS = 30.0
_POLL_SECONDS = 0.05
_ROUND = "example.com/round"
# By default 50 requests a second would be what the binds of several rounds wait for.
_CONFIGURATION: Object = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "clientConnection": {"qps": 5000, "burst": 5000},
    "profiles": [{"schedulerName": "bayplan"}],
}


@dataclass(frozen=True, slots=True)
class Layout:
    """What a round puts on a cluster; `waves` are pods and groups that come together, one after the other."""

    nodes: list[Object]
    waves: list[list[tuple[str, Object]]]
    gangs: dict[str, Gang]


@dataclass(frozen=True, slots=True)
class Played:
    """Seconds for which a gang ran in part at most, and how many gangs ran whole, and in part, at the end."""

    longest_part: float
    whole: int
    in_part: int

    @property
    def is_good(self) -> bool:
        """Whether no gang ran in part for longer than binds take, nor does at the end."""
        return self.longest_part <= ALLOWED_SECONDS and not self.in_part


def layout(seed: int, number: int, namespace: str) -> Layout:
    """Returns the round of that number, the same for the same seed."""
    dice = random.Random(f"{seed}/{number}")
    gangs: dict[str, Gang] = {}
    objects: list[tuple[str, Object]] = []
    wanted = 0
    for name in "abcdef"[: dice.randint(2, 6)]:
        count = dice.randint(2, 16)
        least = count if dice.random() < 0.6 else dice.randint(2, count)
        wanted += count
        names = [f"{name}-{index:02d}" for index in range(count)]
        gangs[name] = Gang(least, frozenset(f"{namespace}/{each}" for each in names))
        objects.append((GROUPS, group(name, namespace, least)))
        own = {"nodeSelector": {_ROUND: namespace}}
        objects += [("pods", member(each, namespace, name, requests={"cpu": "1"}, **own)) for each in names]
    dice.shuffle(objects)
    half = dice.randint(0, len(objects))
    room = max(2, round(wanted * dice.uniform(0.3, 0.9)))
    nodes: list[Object] = []
    while room > 0:
        cpu = min(room, dice.randint(1, 8))
        nodes.append(node(f"{namespace}-{len(nodes)}", cpu=str(cpu), labels={_ROUND: namespace}))
        room -= cpu
    return Layout(nodes, [wave for wave in (objects[:half], objects[half:]) if wave], gangs)


def play(client: ApiClient, recorder: PodRecorder, layouts: Sequence[Layout]) -> list[Played]:
    """Plays rounds, all at once, before the scheduler that runs, and clears them away."""
    began, before = time.monotonic(), len(recorder.events)
    try:
        client.create_all("nodes", [each for made in layouts for each in made.nodes])
        for waves in itertools.zip_longest(*(made.waves for made in layouts), fillvalue=()):
            wave = [each for one in waves for each in one]
            for resource in (GROUPS, "pods") if len(wave) % 2 else ("pods", GROUPS):
                client.create_all(resource, [each for kind, each in wave if kind == resource])
        _settle(recorder, began)
        events, until = recorder.catch_up()[before:], time.monotonic()
        return [_judge(made, events, until) for made in layouts]
    finally:
        _clear(
            client, {namespace for made in layouts for gang in made.gangs.values() for namespace in _namespaces(gang)}
        )


def _judge(made: Layout, events: Sequence[PodEvent], until: float) -> Played:
    bound = {event.key for event in events if event.node}
    counts = [(len(gang.members & bound), gang.least) for gang in made.gangs.values()]
    whole = sum(count >= least for count, least in counts)
    in_part = sum(0 < count < least for count, least in counts)
    return Played(longest(parts(events, made.gangs, until)), whole, in_part)


def _namespaces(gang: Gang) -> set[str]:
    return {key.partition("/")[0] for key in gang.members}


def _settle(recorder: PodRecorder, began: float) -> None:
    """Waits until nothing has been bound for a while, or for as long as a round may take."""
    count, since = -1, time.monotonic()
    while (now := time.monotonic()) - since < _QUIET_SECONDS and now - began < _LONGEST_SECONDS:
        bound = len(recorder.bound_at())
        if bound != count:
            count, since = bound, now
        time.sleep(_POLL_SECONDS)


def _clear(client: ApiClient, namespaces: set[str]) -> None:
    for namespace in namespaces:
        client.delete_all("pods", namespace)
        client.delete_all(GROUPS, namespace)
    client.delete_all("nodes")
    wait_until(lambda: not any(client.list("pods", each) for each in namespaces), "the end of the round's pods")


def main(arguments: Sequence[str] | None = None) -> int:
    """Plays rounds, and prints those that were bad and a line for all; 1 if one was bad, or no gang ran at all."""
    parser = argparse.ArgumentParser(prog="python -m e2e.gangs.rounds", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=20, help="rounds that are played at a time")
    options = parser.parse_args(arguments)
    started = time.monotonic()
    bad: list[int] = []
    worst, whole = 0.0, 0
    namespaces = [f"rounds-{index}" for index in range(options.at_once)]
    with ControlPlane.start(ControlPlaneOptions(bench=True)) as plane:
        install_crd(plane)
        plane.client.create_all("namespaces", [{"metadata": {"name": name}} for name in namespaces])
        (directory := plane.directory / "rounds").mkdir()
        with BayplanProcess(directory, config=_CONFIGURATION, kubeconfig=install_bayplan(plane)) as process:
            for first in range(0, options.rounds, options.at_once):
                numbers = range(first, min(first + options.at_once, options.rounds))
                layouts = [
                    layout(options.seed, number, name) for number, name in zip(numbers, namespaces, strict=False)
                ]
                with PodRecorder(plane.client) as recorder:
                    found = play(plane.client, recorder, layouts)
                process.check_alive()
                for number, played in zip(numbers, found, strict=True):
                    worst, whole = max(worst, played.longest_part), whole + played.whole
                    if not played.is_good:
                        bad.append(number)
                        print(f"round {number}: {played}", flush=True)
                print(
                    f"{numbers.stop} rounds: {len(bad)} bad, {whole} gangs whole, "
                    f"longest part {worst:.3f} s, {time.monotonic() - started:.0f} s",
                    flush=True,
                )
    print(
        f"{options.rounds} rounds of seed {options.seed}: {len(bad)} bad {bad[:20]}, {whole} gangs ran whole, "
        f"the longest time in part {worst:.3f} s; {time.monotonic() - started:.0f} s"
    )
    return int(bool(bad) or not whole)


if __name__ == "__main__":
    sys.exit(main())
