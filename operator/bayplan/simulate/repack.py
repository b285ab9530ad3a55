"""All pods that can move placed anew, as if their nodes were empty, and what stands in the way."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Final

from bayplan.api.objects import PodStatus
from bayplan.cache.cache import is_finished
from bayplan.cache.pod_info import PodInfo
from bayplan.shown_text import counted
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.documents import ClusterFileError
from bayplan.simulate.drain import why_it_stays
from bayplan.simulate.released_claims import released
from bayplan.simulate.report import Repack
from bayplan.simulate.simulator import Simulator

ONLY_KEYS: Final = ("namespace", "scheduler")
_COUNTS: Final = re.compile(r"(^|, )\d+ ")


@dataclass(frozen=True, slots=True)
class Repacking:
    """A cluster whose pods are to be placed anew; `objects` has them waiting."""

    objects: ClusterObjects
    moved: Mapping[str, str]
    """The node that each was on, by UIDs."""
    staying: dict[str, int]
    """How many pods stay where they are, by reason."""
    nodes_before: int

    def outcome(self, simulator: Simulator) -> Repack:
        """Return what came of it, once the simulator has decided about all pods."""
        report = simulator.report()
        messages = {(pod.namespace, pod.name): pod.attempts[-1].message or "" for pod in report.pods}
        lost = [pod for pod in self.objects.pods if pod.uid in self.moved and simulator.cache.node_of(pod.uid) is None]
        unplaced = Counter(_reason(messages.get((pod.namespace, pod.name), "")) for pod in lost)
        nodes = simulator.cache.nodes
        # A pod that finds no other node stays where it is.
        ran = {pod.uid for pod in self.objects.pods if pod.pod.spec.node_name} | self.moved.keys()
        joined = [
            pod for pod in self.objects.pods if pod.uid not in ran and simulator.cache.node_of(pod.uid) is not None
        ]
        kept = {*compress(nodes.names, nodes.in_use().tolist()), *(self.moved[pod.uid] for pod in lost)}
        return Repack(
            nodes_in_use_before=self.nodes_before,
            nodes_in_use=report.summary.nodes_in_use,
            emptied_nodes=max(self.nodes_before - len(kept), 0),
            placed=len(self.moved) - len(lost),
            joined=len(joined),
            unplaced=dict(unplaced.most_common()),
            staying=self.staying,
        )


def repacked(objects: ClusterObjects, profiles: Sequence[str], only: Collection[str] = ()) -> Repacking:
    """Return the cluster with the pods that run waiting again, each for its scheduler or else the first of `profiles`.

    They keep name, priority and age, by which the queue orders them. Pods that nobody may move (`why_it_stays`) and
    those on nodes that were not given stay. With `only`, of `namespace=NAME` or `scheduler=NAME`, so do pods that none
    of these names.

    Raises:
        ClusterFileError: an entry of `only` is of another form, or names no pod that runs.
    """
    known = {node.metadata.name for node in objects.nodes}
    used: set[str] = set()
    moved: dict[str, str] = {}
    staying: Counter[str] = Counter()
    unmatched = set(only)
    pods: list[PodInfo] = []
    for pod in objects.pods:
        spec = pod.pod.spec
        if spec.node_name and not is_finished(pod.pod):
            names = {f"namespace={pod.namespace}", f"scheduler={spec.scheduler_name}"}
            unmatched -= names
            if spec.node_name in known and not pod.stays:
                used.add(spec.node_name)
            why = _stays(pod, known, chosen=not only or not names.isdisjoint(only))
            if why is None:
                moved[pod.uid] = spec.node_name
                pod = _waiting(pod, profiles)  # noqa: PLW2901 - the same pod, otherwise
            else:
                staying[why] += 1
        pods.append(pod)
    for each in sorted(unmatched):
        if each.partition("=")[0] not in ONLY_KEYS or each.endswith("="):
            raise ClusterFileError(f"--only: {each!a} is neither namespace=NAME nor scheduler=NAME")
        raise ClusterFileError(f"--only: no pod that runs has {each!a}")
    looked_up = released(objects.looked_up, moved.keys())
    return Repacking(replace(objects, pods=pods, looked_up=looked_up), moved, dict(sorted(staying.items())), len(used))


def repack_lines(repack: Repack) -> Iterator[str]:
    """Yield what people are told: nodes before and after, and what stands in the way."""
    before, needed = repack.nodes_in_use_before, repack.nodes_in_use
    joined = f" with {counted(repack.joined, 'pod')} that did not run before" if repack.joined else ""
    yield f"{counted(before, 'node')} in use before, {needed} now{joined}; {repack.emptied_nodes} could be emptied"
    lost = sum(repack.unplaced.values())
    yield f"{counted(repack.placed, 'pod')} placed anew, {lost} found no node"
    for reason, count in repack.unplaced.items():
        yield f"no node for {count}: {reason}"
    for reason, count in repack.staying.items():
        yield f"left where they are, {reason}: {count}"


def _stays(pod: PodInfo, known: Collection[str], *, chosen: bool) -> str | None:
    """Why a pod that runs is not placed anew."""
    if (why := why_it_stays(pod)) is not None:
        return why
    if pod.pod.spec.node_name not in known:
        return "on nodes not given"
    return None if chosen else "left out by --only"


def _waiting(pod: PodInfo, profiles: Sequence[str]) -> PodInfo:
    spec = pod.pod.spec
    scheduler = spec.scheduler_name if spec.scheduler_name in profiles else profiles[0]
    made = pod.with_spec(PodStatus(phase="Pending"), node_name="", scheduler_name=scheduler)
    made.take_over(pod)
    return made


def _reason(message: str) -> str:
    """Why a pod found no node, without how many nodes there are of each kind: those differ from pod to pod."""
    reasons = message.partition(". preemption:")[0].partition(" nodes are available: ")[2] or message
    return _COUNTS.sub(r"\1", reasons).rstrip(".")
