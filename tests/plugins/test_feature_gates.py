"""Feature gates change what plugins decide."""

from dataclasses import replace

import pytest
from tests.builders import make_node, make_pod, make_pod_info
from tests.plugins.preemption.worlds import World
from tests.plugins.scenes import spread

from bayplan.api.objects import Toleration
from bayplan.config.feature_gates import parse_feature_gates
from bayplan.config.load import default_configuration
from bayplan.framework.cluster_event import NODE_TAINT, QueueingHint
from bayplan.scheduler.decision import Placement

COMPARING = "TaintTolerationComparisonOperators=true"
KEYS_OFF = "MatchLabelKeysInPodTopologySpread=false,MatchLabelKeysInPodTopologySpreadSelectorMerge=false"
ABOVE_FOUR = Toleration(key="level", operator="Gt", value="4")


def world(gates, *objects):
    configuration = replace(default_configuration(), feature_gates=parse_feature_gates([gates]))
    return World(*objects, configuration=configuration)


def fits(cluster, **pod):
    return isinstance(cluster.schedule(make_pod(labels={"app": "web", "version": "2"}, **pod)), Placement)


@pytest.mark.parametrize(("gates", "fitting"), [("", False), (COMPARING, True)])
@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_tolerations_compare_where_the_gate_is_on(gates, fitting, effect):
    cluster = world(gates, make_node(taints=[f"level=5:{effect}"]))
    assert fits(cluster, tolerations=[ABOVE_FOUR]) is fitting


@pytest.mark.parametrize(("gates", "chosen"), [("", "plain"), (COMPARING, "tainted")])
def test_soft_taints_are_tolerated_by_comparison_where_the_gate_is_on(gates, chosen):
    nodes = make_node("tainted", taints=["level=5:PreferNoSchedule"]), make_node("plain")
    assert world(gates, *nodes).schedule(make_pod(tolerations=[ABOVE_FOUR])).node_name == chosen


@pytest.mark.parametrize(("gates", "fitting"), [("", True), (COMPARING, False)])
def test_spreading_counts_tainted_nodes_by_comparison_where_the_gate_is_on(gates, fitting):
    # The node with the taint is a domain without pods for those that tolerate it, and too small for this one.
    small = make_node("b", cpu=1, labels={"zone": "b"}, taints=["level=5:NoSchedule"])
    cluster = world(gates, make_node("a", labels={"zone": "a"}), small, make_pod(node="a", labels={"app": "web"}))
    honours = [spread(node_taints_policy="Honor")]
    assert fits(cluster, cpu=2, spread=honours, tolerations=[ABOVE_FOUR]) is fitting


@pytest.mark.parametrize(("gates", "hint"), [("", QueueingHint.SKIP), (COMPARING, QueueingHint.QUEUE)])
def test_a_taint_that_changes_wakes_pods_by_comparison_where_the_gate_is_on(gates, hint):
    plugin = world(gates).framework.plugins["TaintToleration"]
    (registration,) = [each for each in plugin.events_to_register() if each.event == NODE_TAINT]
    before, now = (make_node(taints=[f"level={level}:NoSchedule"]) for level in (4, 5))
    assert registration.hint is not None
    assert registration.hint(make_pod_info(tolerations=[ABOVE_FOUR]), before, now) is hint


@pytest.mark.parametrize(("gates", "fitting"), [("", True), (KEYS_OFF, False)])
def test_spread_constraints_have_match_label_keys_unless_the_gate_is_off(gates, fitting):
    # Only the first version runs in the zone: with the key there is none of the pod's.
    old = make_pod(node="a", labels={"app": "web", "version": "1"})
    cluster = world(gates, make_node("a", labels={"zone": "a"}), make_node("b", cpu=1, labels={"zone": "b"}), old)
    assert fits(cluster, cpu=2, spread=[spread(match_label_keys=["version"])]) is fitting
