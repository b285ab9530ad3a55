"""Pods of one shape share what hints about nodes say, and nothing else."""

from collections import Counter
from itertools import product

from tests.builders import make_node, make_pod_info
from tests.queue.scene import info

from bayplan.cache.cache import Cache
from bayplan.config.load import default_configuration
from bayplan.framework.cluster_event import (
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_LABEL,
    NODE_TAINT,
    EventRegistration,
    EventResource,
    QueueingHint,
)
from bayplan.framework.status import SUCCESS
from bayplan.plugins.registry import build_frameworks
from bayplan.queue.queue_settings import QueueProfile, queue_settings
from bayplan.queue.queued_pod import QueuedPodInfo, SubQueue
from bayplan.queue.queueing_hints import ObservedEvent, QueueingHintMaps, is_pod_worth_requeuing, worth_requeuing


class Asked:
    """A profile whose hints remember the pods they were asked about; red pods are helped."""

    def __init__(self, shape=lambda pod: pod.pod.metadata.labels["colour"]):
        self.pods = []
        registrations = [EventRegistration(event, self._hint) for event in (NODE_ADD, ASSIGNED_POD_DELETE)]
        profile = QueueProfile(lambda pod: SUCCESS, {"A": registrations, "B": registrations}, shape)
        self.profiles = {"bayplan": profile}

    def _hint(self, pod, old, new):
        self.pods.append(pod.name)
        return QueueingHint.QUEUE if pod.pod.metadata.labels["colour"] == "red" else QueueingHint.SKIP

    def helps(self, event, *pods):
        observed = ObservedEvent(event, None, None, QueueingHintMaps(self.profiles)[event])
        is_worth = worth_requeuing(observed, self.profiles)
        return [is_worth(pod) for pod in pods]


def waiting(name, colour="red", rejectors=("A",)):
    queued = QueuedPodInfo(info(name, colour=colour), timestamp=0.0, sequence=0)
    queued.rejector_plugins = frozenset(rejectors)
    queued.sub_queue = SubQueue.UNSCHEDULABLE
    return queued


def test_pods_of_one_shape_and_the_same_rejectors_are_asked_about_once():
    asked = Asked()
    pods = [waiting("a"), waiting("b"), waiting("c", "blue"), waiting("d", "blue"), waiting("e", rejectors=("B",))]
    assert asked.helps(NODE_ADD, *pods) == [True, True, False, False, True]
    assert asked.pods == ["a", "c", "e"]


def test_pods_without_a_shape_are_asked_about_one_by_one():
    asked = Asked(shape=lambda pod: None)
    assert asked.helps(NODE_ADD, waiting("a"), waiting("b")) == [True, True]
    assert asked.pods == ["a", "b"]


def test_a_pod_whose_shape_cannot_be_told_is_asked_about_alone():
    def shape(pod):
        raise ValueError("unreadable")

    asked = Asked(shape)
    assert asked.helps(NODE_ADD, waiting("a"), waiting("b")) == [True, True]
    assert asked.pods == ["a", "b"]


def test_hints_about_pods_may_look_at_names_so_nothing_is_shared():
    asked = Asked()
    assert asked.helps(ASSIGNED_POD_DELETE, waiting("a"), waiting("b")) == [True, True]
    assert asked.pods == ["a", "b"]


def test_in_tree_hints_about_nodes_treat_pods_of_one_shape_alike():
    cache = Cache()
    profiles = queue_settings(build_frameworks(default_configuration(), cache.nodes, cache.listers)).profiles
    (profile,), hint_maps = profiles.values(), QueueingHintMaps(profiles)
    variants = ({"cpu": "2"}, {"cpu": "9"}, {"node_selector": {"zone": "a"}}, {"tolerations": ["x:NoSchedule"]})
    nodes = [None, make_node("n", cpu="4"), make_node("n", cpu="1", labels={"zone": "a"}, taints=["x:NoSchedule"])]
    answers = set()
    for fields, old, new, event in product(variants, nodes, nodes[1:], (NODE_ADD, NODE_LABEL, NODE_TAINT)):
        first = make_pod_info("a", uid="a", **fields)
        other = make_pod_info("b", uid="b", priority=7, labels={"app": "x"}, created="2025-01-01T00:00:00Z", **fields)
        assert profile.shape(first) == profile.shape(other) is not None
        for plugin in profile.registrations:
            pair = []
            for pod in (first, other):
                queued = QueuedPodInfo(pod, timestamp=0.0, sequence=0)
                queued.rejector_plugins = frozenset({plugin})
                observed = ObservedEvent(event, old, new, hint_maps[event])
                assert observed.event.resource is EventResource.NODE
                pair.append(is_pod_worth_requeuing(queued, observed, Counter()))
            assert pair[0] is pair[1]
            answers.add((plugin, pair[0]))
    assert len({plugin for plugin, _ in answers}) < len(answers), "no plugin said both yes and no"
