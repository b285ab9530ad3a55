"""A cluster on which moves are tried by the engine, and taken back."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import msgspec

from bayplan.api.objects import Node
from bayplan.api.workload_objects import PodDisruptionBudget
from bayplan.cache.group_members import PodGroupKey
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import PODS
from bayplan.framework.candidate import start_time
from bayplan.scheduler.decision import FitError, Placement
from bayplan.shown_text import natural_key
from bayplan.simulate.capacity import why_no_node
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.drain import ALONE, Allowances, cordoned, waiting_anew, why_it_stays
from bayplan.simulate.released_claims import Claim, take_again
from bayplan.simulate.simulator import Simulator

_MILLION: Final = 1_000_000


class Told(msgspec.Struct, rename="camel", gc=False):
    """camelCase on the wire."""


class Move(Told):
    """An eviction, and where the pod lands that its controller makes in its place."""

    namespace: str
    name: str
    uid: str
    source: str = msgspec.field(name="from")
    to: str
    waits_for: str | None = None
    """The budget, as namespace/name, that allows this eviction once those before it run elsewhere."""


class Obstacle(Told):
    """Why a pod keeps its node, or gets none."""

    node: str
    """Where it is, or would be; empty where that is nowhere."""
    namespace: str
    name: str
    uid: str
    reason: str


class Rehearsal:
    """The cluster after all pods that wait were tried; every move goes through the engine that `bayplan run` uses.

    Nobody is preempted: pods that wait, and those that are made anew, take what room there is. `take_back` makes all as
    it was at the beginning.
    """

    def __init__(self, simulator: Simulator, objects: ClusterObjects) -> None:
        self.simulator = simulator
        self.nodes = simulator.cache.nodes
        self._budgets = [each for each in objects.looked_up if isinstance(each, PodDisruptionBudget)]
        self._allowances = Allowances(self._budgets)
        self._moved: list[tuple[PodInfo, str, Sequence[Claim]]] = []
        """Where pods were before they went elsewhere, on a node or on none, and their claims as they were there."""
        self._closed: dict[str, Node] = {}
        """The nodes that are closed for a while, as they were."""
        self._without: dict[PodGroupKey, str] = {}
        """Of each group that was tried last: its first pod that no node takes, and why."""
        simulator.add(replace(objects, pods=[_evicting_nobody(each) for each in objects.pods]))
        self._decide()
        self._moved.clear()
        self._offered = {name: sum(self.nodes.offered(name).tolist()) for name in (*self.nodes.requested, PODS)}

    @property
    def nodes_in_use(self) -> int:
        """How many nodes have a pod that could run elsewhere."""
        return int(self.nodes.in_use().sum())

    def pods_on(self, node: str) -> list[PodInfo]:
        """The pods that have to go before the node is free, the largest first: they find a place the least easily."""
        row = self.nodes.row(node)
        assert row is not None
        pods = (pod for pod in self.nodes.pods[row].values() if not pod.stays and not pod.is_terminating)
        return sorted(pods, key=lambda pod: (-self.size([pod]), natural_key(pod.key)))

    def size(self, pods: Sequence[PodInfo]) -> int:
        """What the pods ask for of all that nodes offer, in millionths, of the resource that it is the most of."""
        asked = {PODS: len(pods)}
        for pod in pods:
            for name, amount in pod.placed.amounts.items():
                asked[name] = asked.get(name, 0) + amount
        return max(int(_MILLION * amount // max(self._offered.get(name, 1), 1)) for name, amount in asked.items())

    def obstacle(self, pod: PodInfo, node: str) -> Obstacle | None:
        """What keeps anybody from evicting the pod, wherever there is room."""
        budgets = self._allowances.asked_by(pod)
        reason = ""
        if why_it_stays(pod) == ALONE:
            reason = "has no controller: nothing would make it again"
        elif len(budgets) > 1:
            reason = f"is of more than one PodDisruptionBudget, {' and '.join(budgets)}: the API server evicts none"
        elif budgets and not self._allowances.allowed(budgets[0]):
            reason = f"PodDisruptionBudget {budgets[0]} allows no disruption"
        elif (name := pod.pod.spec.scheduler_name) not in self.simulator.frameworks:
            reason = f"names the scheduler {name}, which no profile has: give --scheduler-name or --config"
        return Obstacle(node, pod.namespace, pod.name, pod.uid, reason) if reason else None

    def cordon(self, node: str) -> None:
        """Close the node for new pods."""
        before = self.nodes.node(node)
        assert before is not None
        self._closed[node] = before
        self.simulator.update_node(cordoned(before))

    def uncordon(self, node: str) -> None:
        """Open a node again that was closed here, and try the pods that wait."""
        self.simulator.update_node(self._closed.pop(node))
        self._decide()

    def must_leave(self, pod: PodInfo, node: str) -> list[PodInfo] | None:
        """Return which pods have to leave the node before `pod` fits there; None where it never does.

        As in preemption, all are taken away first, and then the most important of them come back if they can.
        """
        framework = self.simulator.frameworks[pod.pod.spec.scheduler_name]
        # As it waits it names the claims that were made for it.
        pod = self.simulator.queue.newest(pod.uid) or pod
        going = [each for each in self.pods_on(node) if self.obstacle(each, node) is None]
        going.sort(key=lambda each: (-each.priority, start_time(each)))
        claims = {each.uid: self.simulator.depart(each.uid) for each in going}
        fits = node in self.simulator.cycle.feasible_nodes(pod, framework)
        for each in [*going] if fits else ():
            self._put(each, node, claims[each.uid])
            if node in self.simulator.cycle.feasible_nodes(pod, framework):
                going.remove(each)
            else:
                self.simulator.depart(each.uid)
        for each in going:
            self._put(each, node, claims[each.uid])
        return going if fits else None

    def why_group_waits(self, pod: PodInfo) -> str:
        """Say of a pod without a node that its group was tried, and which pod of that has no room; "" of others."""
        group = self.simulator.groups.of(pod)
        if group is None:
            return ""
        first = self._without.get(group)
        return f"not all of pod group {group} find room{f': {first}' if first else ''}"

    def move(self, pod: PodInfo, node: str) -> Move | Obstacle:
        """Evict the pod, and have the engine decide where the one goes that is made in its place."""
        budgets = self._allowances.asked_by(pod)
        waits_for = None if not budgets or self._allowances.take(budgets[0]) else budgets[0]
        claims = self.simulator.depart(pod.uid)
        self._moved.append((pod, node, claims))
        self.simulator.add(ClusterObjects(pods=[_evicting_nobody(PodInfo(waiting_anew(pod.pod)))]))
        reason = self._decide(pod.uid)
        found = self.simulator.cache.node_of(pod.uid)
        if found is None:
            # Nobody would evict it.
            self._put(pod, node, claims)
            return Obstacle(node, pod.namespace, pod.name, pod.uid, reason)
        return Move(pod.namespace, pod.name, pod.uid, node, found, waits_for)

    def take_back(self) -> None:
        """Have everything be as it was before the first move."""
        while self._moved:
            self._put(*self._moved.pop())
        while self._closed:
            self.simulator.update_node(self._closed.popitem()[1])
        self._allowances = Allowances(self._budgets)
        self._decide()
        self._moved.clear()

    def _decide(self, uid: str = "") -> str:
        """Have all pods tried that are worth trying, and return why the one of this UID got no node, if it got none."""
        reason = "its pod is not tried"
        self._without.clear()
        while (step := self.simulator.step()) is not None:
            if step.pod.uid == uid:
                reason = why_no_node(step.outcome) if isinstance(step.outcome, FitError) else step.message or reason
            elif isinstance(step.outcome, Placement):
                self._moved.append((step.pod, "", ()))
            # Those of a group that had a place, or were not tried any more, have no outcome.
            if isinstance(step.outcome, FitError) and (group := self.simulator.groups.of(step.pod)) is not None:
                self._without.setdefault(group, f"{step.pod.name}: {why_no_node(step.outcome)}")
        return reason

    def _put(self, pod: PodInfo, node: str, claims: Sequence[Claim]) -> None:
        """Have the pod be on the node with these claims, wherever it is, or wait where that is none."""
        left = self.simulator.depart(pod.uid)
        take_again(self.simulator.cache.listers, pod, claims if node else left, waits=not node)
        self.simulator.add(ClusterObjects(pods=[pod.with_spec(node_name=node)]))


def _evicting_nobody(pod: PodInfo) -> PodInfo:
    """The pod, which preempts nobody should it wait."""
    return pod if pod.pod.spec.node_name else pod.with_spec(preemption_policy="Never")
