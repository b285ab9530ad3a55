"""A cluster without a queue, in which rounds of pod groups are run beside a plugin that misbehaves when told to."""

import itertools

from tests.builders import make_node, make_pod_info

from bayplan.cache.cache import Cache
from bayplan.cache.group_members import GroupSource
from bayplan.config.load import default_configuration
from bayplan.framework.interface import Status
from bayplan.framework.nominator import Nominator
from bayplan.framework.status import SUCCESS
from bayplan.groups.pod_groups import PodGroups
from bayplan.plugins.registry import build_frameworks
from bayplan.queue.queued_pod import QueuedPodInfo
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.emptied_nodes import KeptEmptiedNodes
from bayplan.scheduler.pod_group_preemption import PodGroupPreemption
from bayplan.scheduler.pod_group_round import PodGroupRound

LARGE = "1000"
"""A cpu request that no node has room for."""


class Reserving:
    """A Reserve plugin that remembers who holds what, and rejects or raises for the pods it is told to."""

    name = "Reserving"

    def __init__(self):
        self.held = []
        self.given_back = []
        self.answers = {}

    def reserve(self, state, pod, node_name):
        answer = self.answers.get(pod.name, SUCCESS)
        if isinstance(answer, Exception):
            raise answer
        if answer.ok:
            self.held.append(pod.name)
        return answer

    def unreserve(self, state, pod, node_name):
        self.given_back.append(pod.name)
        if pod.name in self.held:
            self.held.remove(pod.name)
        if isinstance(self.answers.get(f"unreserve {pod.name}"), Exception):
            raise self.answers[f"unreserve {pod.name}"]


class GroupScene:
    """Nodes of 4 CPUs each, and what runs rounds on them."""

    def __init__(self, nodes=2, configuration=None):
        self.cache = Cache()
        self.now = 0.0
        for number in range(nodes):
            self.cache.set_node(make_node(f"n{number}"))
        nominator = self.nominator = Nominator()
        self.frameworks = build_frameworks(
            configuration or default_configuration(), self.cache.nodes, self.cache.listers, nominator, lambda: self.now
        )
        (self.framework,) = self.frameworks.values()
        self.reserving = Reserving()
        self.framework.reserves = [*self.framework.reserves, self.reserving]
        self.groups = PodGroups(self.cache)
        for source in GroupSource:
            self.groups.serve(source)
        self.cycle = SchedulingCycle(self.cache.nodes, nominator, self.frameworks.values())
        self.kept = KeptEmptiedNodes(self.cache, self.groups, nominator)
        self._sequence = itertools.count()

    def bound(self, name, **fields):
        """Put a pod on a node, whoever bound it."""
        pod = make_pod_info(name, node=fields.pop("node", "n0"), **fields)
        self.cache.set_pod(pod)
        return pod

    def queued(self, *cpus, group="g", **fields):
        """Members p0, p1, ... of these requests, in the queue's order."""
        pods = [make_pod_info(f"p{i}", cpu=cpu, group=group, **fields) for i, cpu in enumerate(cpus)]
        return [QueuedPodInfo(pod, 0.0, next(self._sequence)) for pod in pods]

    def round(self, group, members, kept=None, **options):
        kept = self.kept if kept is None else kept
        preemption = PodGroupPreemption(group, members, kept, self.frameworks, clock=lambda: 0.0)
        return PodGroupRound(
            group,
            members,
            cache=self.cache,
            cycle=self.cycle,
            frameworks=self.frameworks,
            clock=lambda: 0.0,
            preempt=preemption.run,
            **options,
        )

    def run(self, group, members, **options):
        return self.round(group, members, **options).run()


def told(result):
    return {each.queued.pod_info.name: each.message for each in result.members}


def nodes_of(result):
    return {each.queued.pod_info.name: each.placement.node_name for each in result.members if each.placement}


def rejection(*reasons, code):
    return Status(code, reasons)
