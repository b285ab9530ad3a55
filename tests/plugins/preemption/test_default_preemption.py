import numpy as np
import pytest
from tests.builders import make_node, make_selector, make_term
from tests.cache_checks import assert_adds_up
from tests.plugins.inter_pod_affinity.affinity_scenes import required, term
from tests.plugins.preemption.worlds import World, high, low, minute
from tests.plugins.scenes import spread
from tests.plugins.volume_scenes import claim, csi_node, pod_with, volume

from bayplan.api.objects import Condition
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import Rejections
from bayplan.framework.status import Code, Status


def test_only_as_many_pods_as_needed_are_evicted_the_least_important_first():
    world = World(
        make_node("n1", cpu="4"),
        low("old", cpu="1", start_time=minute(1)),
        low("young", cpu="1", start_time=minute(9)),
        low("lowest", cpu="1", priority=0, start_time=minute(0)),
        low("important", cpu="1", priority=5, start_time=minute(9)),
    )
    assert world.preempt(high(cpu="2")) == ("n1", ["young", "lowest"])


def test_pods_of_equal_or_higher_priority_are_never_victims():
    world = World(make_node("n1", cpu="4"), low("equal", priority=10), low("higher", priority=11))
    assert world.post_filter_message(high()) == (
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_every_node_that_cannot_help_is_counted_with_its_reason():
    world = World(
        make_node("tainted", cpu="4", taints=["x:NoSchedule"]),
        make_node("small", cpu="2"),
        make_node("equals", cpu="4"),
        make_node("mixed", cpu="4"),
        low("a", "equals", cpu="4", priority=10),
        low("b", "mixed", priority=10),
        low("c", "mixed"),
    )
    outcome = world.schedule(high())
    assert outcome.post_filter.nominated_node_name == ""
    assert outcome.post_filter.status.message == (
        "preemption: 0/4 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming pod, "
        "2 Preemption is not helpful for scheduling."
    )
    assert outcome.message.startswith(
        "0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 Insufficient cpu. "
    )


def test_a_filter_that_cannot_answer_ends_preemption_with_its_error():
    in_no_region = {"topology.kubernetes.io/zone": "z0__z1"}
    disk = volume("v", gce_persistent_disk={"pdName": "d"}, labels=in_no_region)
    world = World(make_node("n1", cpu="4"), low("a"))
    world.add(claim(volume="v", bound=True), disk, csi_node("n1", migrated="kubernetes.io/gce-pd"))
    assert world.post_filter_message(pod_with("c", cpu="3", priority=10)) == (
        'preemption: running "VolumeBinding" filter plugin: could not translate pv: failed to get region from zones: '
        "zone in unexpected format, expected: {locale}-{region}-{zone}, got: z0"
    )


def test_a_pod_that_may_never_preempt_says_so_and_keeps_its_nomination():
    world = World(make_node("n1", cpu="4"), low("a"))
    outcome = world.schedule(high(preemption_policy="Never"))
    assert outcome.post_filter.nominated_node_name is None
    assert outcome.post_filter.status.message == "preemption: not eligible due to preemptionPolicy=Never."


def terminating(name, reason="PreemptionByScheduler", status="True", **fields):
    condition = Condition(type="DisruptionTarget", status=status, reason=reason)
    return low(name, deleting=True, conditions=[condition], **fields)


def test_a_pod_whose_victims_still_terminate_does_not_preempt_again():
    world = World(make_node("n1", cpu="4"), terminating("a"), make_node("n2", cpu="4"), low("b", "n2"))
    outcome = world.schedule(high(nominated="n1"))
    assert (outcome.post_filter.nominated_node_name, outcome.post_filter.victims) == (None, ())
    assert outcome.post_filter.status.message == (
        "preemption: not eligible due to a terminating pod on the nominated node."
    )


@pytest.mark.parametrize(
    "pod",
    [
        terminating("a", reason="EvictionByEvictionAPI"),
        terminating("a", status="False"),
        low("a", deleting=True),
        low("a"),
    ],
)
def test_pods_that_terminate_for_other_reasons_do_not_hold_preemption_back(pod):
    world = World(make_node("n1", cpu="4"), pod)
    assert world.preempt(high(nominated="n1")) == ("n1", ["a"])


def test_a_pod_nominated_to_a_node_that_can_no_longer_take_it_preempts_elsewhere():
    gone = make_node("n1", cpu="4", taints=["x:NoSchedule"])
    world = World(gone, terminating("a"), make_node("n2", cpu="4"), low("b", "n2"))
    assert world.preempt(high(nominated="n1")) == ("n2", ["b"])
    assert world.preempt(high(nominated="vanished")) == ("n2", ["b"])


def only_on(*nodes):
    return [make_term(fields=[f"metadata.name In {name}"]) for name in nodes]


def test_a_daemons_pod_that_waits_for_its_victims_names_who_rejects_it_on_its_node_for_the_others_too():
    world = World(make_node("n1", cpu="4"), terminating("a"), make_node("n2"), make_node("n3"))
    outcome = world.schedule(high(nominated="n1", node_affinity=only_on("n1")))
    assert outcome.diagnosis.message == (
        "0/3 nodes are available: 1 Insufficient cpu, "
        "2 node(s) didn't satisfy plugin(s) [NodeAffinity NodeResourcesFit]."
    )
    assert world.schedule(high(node_affinity=only_on("n1"))).diagnosis.message == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


@pytest.mark.parametrize(
    ("taints", "reason", "plugins"),
    [
        ((), "node(s) didn't match Pod's node affinity/selector", "NodeAffinity"),
        (["x:NoSchedule"], "node(s) had untolerated taint(s)", "NodeAffinity TaintToleration"),
    ],
)
def test_a_nominated_node_that_a_pod_may_not_use_has_the_reason_of_its_own_filters(taints, reason, plugins):
    nodes = (make_node("n1", cpu="1"), make_node("n2", taints=taints), make_node("n3"))
    outcome = World(*nodes).schedule(high(nominated="n2", node_affinity=only_on("n1")))
    counts = sorted(["1 Insufficient cpu", f"1 {reason}", f"1 node(s) didn't satisfy plugin(s) [{plugins}]"])
    assert outcome.diagnosis.message == f"0/3 nodes are available: {', '.join(counts)}."


def test_where_the_nominated_node_is_all_that_was_left_out_nothing_else_is_told_of_that():
    world = World(make_node("n1", cpu="1"), make_node("n2"))
    outcome = world.schedule(high(nominated="n2", node_affinity=only_on("n1")))
    assert outcome.diagnosis.message == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector."
    )


def test_host_ports_are_freed_with_their_pods():
    world = World(make_node("n1", cpu="40"), low("a", host_ports=[80]), low("b", host_ports=[81]))
    assert world.preempt(high(host_ports=[80])) == ("n1", ["a"])


def test_a_pod_that_keeps_another_away_is_evicted():
    apart = required(term("zone", make_selector(app="a")))
    world = World(
        make_node("n1", cpu="40", labels={"zone": "z"}), low("a", labels={"app": "a"}), low("b", labels={"app": "b"})
    )
    assert world.preempt(high(pod_anti_affinity=apart)) == ("n1", ["a"])


def test_preemption_leaves_the_node_table_as_it_was():
    world = World(make_node("n1", cpu="4"), low("a"), make_node("n2", cpu="4"), low("b", "n2", cpu="4"))
    nodes = world.cache.nodes
    before = (nodes.usage_changed.position, nodes.requested["cpu"].tolist(), nodes.pod_count.tolist())
    world.preempt(high())
    assert (nodes.usage_changed.position, nodes.requested["cpu"].tolist(), nodes.pod_count.tolist()) == before
    assert_adds_up(world.cache)


def test_nodes_that_take_the_pod_with_nobody_evicted_fail_the_preemption():
    world = World(make_node("n1", cpu="9"), make_node("n2", cpu="9"), low("a"), low("b", "n2"))
    plugin = world.framework.plugins["DefaultPreemption"]
    nodes = world.cache.nodes
    pod = PodInfo(high())
    rejected = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE)

    def answer(count):
        codes = np.array(rejected[:count], dtype=np.int8)
        rejections = Rejections(np.arange(count), codes, world.framework.filters, world.framework.pre_filters)
        return plugin.post_filter({}, pod, nodes, rejections)

    one = 'expected at least one victim pod on node "n1"'
    assert answer(1).status == Status(Code.ERROR, (f"preemption: {one}",))
    (text,) = answer(2).status.reasons
    assert text.startswith("preemption: [expected at least one victim pod on node ")
    assert text.endswith("]")
    assert one in text
    assert answer(2).nominated_node_name is None


def test_a_terminating_pod_that_is_taken_off_counts_less_than_nothing_for_spreads():
    apart = spread("host", make_selector(app="c"))
    world = World(
        *(make_node(name, cpu=cpu, labels={"host": name}) for name, cpu in (("n1", "4"), ("n2", "1"))),
        low("kept", cpu="1", priority=5, labels={"app": "c"}),
        low("ending", cpu="1", labels={"app": "c"}, deleting=True),
        low("large", cpu="2", priority=0),
    )
    # Only a count that was one too low lets the pod called kept stay.
    assert world.preempt(high(cpu="2", labels={"app": "c"}, spread=[apart])) == ("n1", ["ending", "large"])


def test_a_pod_that_begins_to_terminate_is_known_to_do_so_when_evictions_are_tried():
    apart = spread("host", make_selector(app="c"))
    world = World(
        *(make_node(name, cpu=cpu, labels={"host": name}) for name, cpu in (("n1", "4"), ("n2", "1"))),
        low("counted", cpu="1", labels={"app": "c"}),
        low("large", cpu="3", priority=0),
        low("other", "n2", cpu="1", priority=99, labels={"app": "c"}),
    )
    pod = PodInfo(high(cpu="2", labels={"app": "c"}, spread=[apart]))
    assert world.preempt(pod) == ("n1", ["large"])
    world.add(low("other", "n2", cpu="1", priority=99, labels={"app": "c"}, deleting=True))
    assert world.preempt(pod) == ("n1", ["counted", "large"])


def test_a_pod_that_preempts_tells_where_and_how_many_go():
    world = World(make_node("n1", cpu="4"), low("a", cpu="2"), low("b", cpu="2"))
    assert world.schedule(high()).post_filter.status.message == (
        "preemption: found a potential placement for pod on node n1, preempting 2 victims"
    )
