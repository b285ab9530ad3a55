"""A scheduler without an API server: objects come as JSON through the decoders and handlers of the running one."""

import itertools
import json
from dataclasses import replace

import msgspec
from tests.cache_checks import assert_adds_up
from tests.recorded_metrics import RecordedMetrics

from bayplan.api.objects import Node, Pod
from bayplan.cache.cache import Cache
from bayplan.config.load import default_configuration
from bayplan.config.types import PodTopologySpreadArgs
from bayplan.evaluation.filter_round import FilterError
from bayplan.framework.cluster_event import ASSIGNED_POD_ADD
from bayplan.framework.nominator import Nominator
from bayplan.plugins.registry import build_frameworks
from bayplan.plugins.volumes.claims import VolumeError
from bayplan.queue.queue_settings import queue_settings
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.decision import Placement
from bayplan.scheduler.event_handlers import AssignedPodEvents, ListerEvents, NodeEvents
from bayplan.scheduler.pending_pods import PendingPodEvents

DECISION_ERRORS = (FilterError, VolumeError)
"""What a cycle may raise: an attempt that fails with these words is told so, and tried again."""

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

_serial = itertools.count()


def _spreading():
    """The configuration without a file, but with kube-scheduler's default spreading: it looks up every kind."""
    configuration = default_configuration()
    (profile,) = configuration.profiles
    spreading = {**profile.plugin_config, "PodTopologySpread": PodTopologySpreadArgs()}
    return replace(configuration, profiles=(replace(profile, plugin_config=spreading),))


class World:
    """Some nodes, a scheduler, and what became of the pods given to it by name."""

    def __init__(self, nodes=4, pods=4):
        self.cache = Cache()
        nominator = Nominator()
        self.frameworks = build_frameworks(_spreading(), self.cache.nodes, self.cache.listers, nominator, lambda: 0.0)
        self.now = 0.0
        self.queue = SchedulingQueue(
            clock=lambda: self.now,
            settings=queue_settings(self.frameworks),
            nominator=nominator,
        )
        self.cycle = SchedulingCycle(self.cache.nodes, nominator)
        self.metrics = RecordedMetrics()
        common = (self.cache, self.queue, self.metrics)
        self.nodes = NodeEvents(*common)
        self.assigned = AssignedPodEvents(*common, on_gone=lambda uid: None)
        self.pending = PendingPodEvents(*common, profiles=frozenset(self.frameworks), on_gone=lambda uid: None)
        self.listed = {
            kind: ListerEvents(self.cache.listers.of(kind), kind.__name__, self.queue)
            for kind in self.cache.listers.wanted()
        }
        for events in self.listed.values():
            events.on_synced()
        self.outcomes = {}
        self.ends_victims = True
        for index in range(nodes):
            self.add_node(node(f"n{index}", labels={ZONE: f"z{index % 2}"}))
        for index in range(pods):
            self.place(pod(f"old-{index}", labels={"app": f"a{index}"}), f"n{index % max(nodes, 1)}")

    def add_node(self, document):
        self.nodes.on_add(decoded(Node, document))

    def place(self, document, node_name):
        self.assigned.on_add(decoded(Pod, {**document, "spec": {**document["spec"], "nodeName": node_name}}))

    def add(self, kind, document):
        self.listed[kind].on_add(decoded(kind, document))

    def schedule(self, *documents):
        """Try pods, and all others that are worth trying; returns what became of the first.

        That is "-> node", the message of the refusal, or "error: " and the text.
        """
        for document in documents:
            self.pending.changed(decoded(Pod, document))
        self.now += 100.0
        self.queue.flush(self.now)
        for _ in range(50):
            queued = self.queue.pop()
            if queued is None:
                break
            self.outcomes[queued.pod_info.name] = self._decide(queued)
        return self.outcomes.get(documents[0]["metadata"]["name"]) if documents else None

    def _decide(self, queued):
        pod, framework = queued.pod_info, self.frameworks[queued.profile]
        try:
            outcome = self.cycle.schedule(pod, framework).outcome
        except DECISION_ERRORS as error:
            self.queue.add_unschedulable(queued, rejector_plugins=frozenset(), error=True)
            return f"error: {error}"
        if not isinstance(outcome, Placement):
            self.queue.add_unschedulable(queued, rejector_plugins=outcome.diagnosis.rejector_plugins, error=False)
            for victim in outcome.post_filter.victims if self.ends_victims else ():
                self.assigned.on_delete(victim.pod)
            return outcome.message
        self.cache.assume_pod(pod, outcome.node_name)
        for plugin in framework.reserves:
            plugin.reserve({}, pod, outcome.node_name)
        self.queue.done(pod.uid)
        self.queue.move_all(ASSIGNED_POD_ADD, None, pod)
        return f"-> {outcome.node_name}"

    def rest(self, periods=2):
        """Time passes in which nothing is asked for; after two periods what is kept for the next pod is let go of."""
        for _ in range(periods):
            self.cycle.release_unused()
            for framework in self.frameworks.values():
                framework.release_unused()

    def assert_unharmed(self):
        """The cache adds up, and a plain pod is placed at once."""
        assert_adds_up(self.cache)
        name = f"plain-{next(_serial)}"
        assert self.schedule(pod(name)).startswith("-> ")
        assert_adds_up(self.cache)


def decoded(kind, document):
    """The object as the watch would bring it."""
    return msgspec.json.decode(json.dumps(document), type=kind)


def metadata(name, *, namespace="", **more):
    serial = next(_serial)
    given = {"name": name, "uid": f"uid-{serial}", "resourceVersion": str(serial), **more}
    return given | ({"namespace": namespace} if namespace else {})


def node(name, *, labels=None, taints=(), images=(), **allocatable):
    return {
        "metadata": metadata(name, labels={HOST: name, **(labels or {})}),
        "spec": {"taints": list(taints)},
        "status": {
            "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "500", **allocatable},
            "images": list(images),
        },
    }


def pod(name="hostile", *, labels=None, annotations=None, **spec):
    containers = [{"name": "c", "resources": {"requests": {"cpu": "10m"}}}]
    return {
        "metadata": metadata(name, namespace="default", labels=labels or {}, annotations=annotations or {}),
        "spec": {"schedulerName": "bayplan", "containers": containers, **spec},
    }


def requests(**amounts):
    return {"containers": [{"name": "c", "resources": {"requests": amounts}}]}


def expression(key, operator, *values):
    return {"key": key, "operator": operator, "values": list(values)}


def node_affinity(terms, *, preferred=False):
    if preferred:
        wishes = [{"weight": 100, "preference": term} for term in terms]
        return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wishes}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


def near_pods(kind, terms, *, preferred=False):
    if preferred:
        wishes = [{"weight": 100, "podAffinityTerm": term} for term in terms]
        return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": wishes}}}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def term(key, *expressions, **more):
    return {"topologyKey": key, "labelSelector": {"matchExpressions": list(expressions)}, **more}


def spread(key, *expressions, action="DoNotSchedule", skew=1, **more):
    selector = {"matchExpressions": list(expressions)}
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": selector, **more}


def claims(*names):
    return {
        "volumes": [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": each}} for i, each in enumerate(names)]
    }
