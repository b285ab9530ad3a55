"""Pod groups in files: their pods are placed together, or none is."""

import json

import pytest
from msgspec import UNSET
from tests.builders import make_node, make_pod_info
from tests.group_builders import make_pod_group
from tests.simulate.explained import run_explained

from bayplan.cache.group_members import GroupSource
from bayplan.config.load import default_configuration
from bayplan.simulate.capacity import capacity_lines, how_many_fit
from bayplan.simulate.changes import Changes
from bayplan.simulate.cluster import read_cluster
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.documents import ClusterFileError
from bayplan.simulate.simulator import Simulator

NATIVE, CRD = "scheduling.k8s.io/v1beta1", "scheduling.x-k8s.io/v1alpha1"
LABEL = "scheduling.x-k8s.io/pod-group"
CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 1000,
}


def node(name, cpu):
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu, "pods": 110}}}


def gang(name, least, **spec):
    policy = {"schedulingPolicy": {"gang": {"minCount": least}}}
    return {"apiVersion": NATIVE, "kind": "PodGroup", "metadata": {"name": name}, "spec": {**policy, **spec}}


def crd_gang(name, least):
    return {"apiVersion": CRD, "kind": "PodGroup", "metadata": {"name": name}, "spec": {"minMember": least}}


def pod(name, group=None, *, label=None, cpu=1, **spec):
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    own = {} if group is None else {"schedulingGroup": {"podGroupName": group}}
    labels = {} if label is None else {LABEL: label}
    spec = {"schedulerName": "bayplan", "containers": containers, **own, **spec}
    return {"kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


@pytest.fixture
def simulator(tmp_path):
    def simulator(*objects, **changes):
        (tmp_path / "in.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        simulator = Simulator(default_configuration())
        simulator.add(read_cluster([str(tmp_path / "in.json")], Changes(**changes)))
        return simulator

    return simulator


@pytest.fixture
def report(simulator):
    return lambda *objects, **changes: simulator(*objects, **changes).run()


def placed(report):
    return {each.name for each in report.pods if each.attempts[-1].node is not None}


def message(report, name):
    return next(each.attempts[-1].message for each in report.pods if each.name == name)


@pytest.mark.parametrize("kind", ["native", "crd"])
def test_a_gang_that_does_not_fit_is_not_placed_in_part(report, kind):
    group, named = (gang("g", 3), {"group": "g"}) if kind == "native" else (crd_gang("g", 3), {"label": "g"})
    pods = [pod(f"g{index}", **named) for index in range(3)]
    small, large = report(node("n", 2), group, *pods), report(node("n", 3), group, *pods)
    assert (placed(small), placed(large)) == (set(), {"g0", "g1", "g2"})
    assert "minCount (3) cannot be satisfied: 2 scheduled" in message(small, "g0")
    assert small.summary.unschedulable == 3


def test_pods_of_a_group_that_is_nowhere_are_unschedulable_and_not_meant_to_wait(report):
    found = report(node("n", 2), pod("a", "lost"))
    assert message(found, "a") == 'waiting for pods\'s pod group "lost" to appear in scheduling queue'
    assert (found.summary.unschedulable, found.summary.gated) == (1, 0)


def test_pods_of_a_gang_that_lacks_some_are_unschedulable(report):
    found = report(node("n", 2), gang("g", 2), pod("a", "g"))
    assert message(found, "a") == "waiting for minCount pods from a gang to appear in scheduling queue"
    assert (found.summary.unschedulable, found.summary.gated) == (1, 0)


def test_a_gang_with_a_gated_pod_is_meant_to_wait(report):
    found = report(node("n", 2), gang("g", 1), pod("a", "g"), pod("b", "g", schedulingGates=[{"name": "hold"}]))
    assert (found.summary.unschedulable, found.summary.gated) == (0, 2)


def test_the_label_groups_nobody_where_no_object_of_its_kind_is_given(report):
    assert placed(report(node("n", 2), pod("a", label="g"))) == {"a"}


def test_groups_of_both_kinds_may_have_one_name(report):
    objects = [gang("g", 2), crd_gang("g", 1), pod("a", "g"), pod("b", label="g")]
    assert placed(report(node("n", 2), *objects)) == {"b"}


def test_a_gang_that_failed_is_tried_again_once_room_was_made(report):
    # The victim leaves when the single pod preempts it, and the room that is left over is the gang's.
    high, low = {"priorityClassName": "high"}, {"nodeName": "n"}
    found = report(
        CLASS,
        node("n", 4),
        gang("g", 2, **high),
        pod("large", cpu=4, **low),
        *[pod(f"g{index}", "g", **high) for index in range(2)],
        pod("single", cpu=1, **high),
    )
    assert placed(found) >= {"g0", "g1"}


def test_the_first_pod_of_a_gang_that_preempts_names_the_victims_on_all_nodes_and_each_pod_its_node(report):
    high = {"priorityClassName": "high"}
    found = report(
        CLASS,
        node("m", 2),
        node("n", 2),
        gang("g", 2, **high),
        pod("low-m", cpu=2, nodeName="m"),
        pod("low-n", cpu=2, nodeName="n"),
        *[pod(f"g{index}", "g", cpu=2, **high) for index in range(2)],
    )
    first, second = (each.attempts for each in found.pods)
    assert sorted(first[0].victims) == ["default/low-m", "default/low-n"]
    assert second[0].victims == []
    assert [each[0].nominated_node_name for each in (first, second)] == [each[-1].node for each in (first, second)]


def test_a_gang_is_not_tried_again_where_nothing_happened_since(report):
    waits = [pod(f"g{index}", "g") for index in range(3)]
    found = report(node("n", 2), gang("g", 3), *waits)
    assert [len(each.attempts) for each in found.pods] == [1, 1, 1]
    # A gang that was placed before it is no news to it, one that is placed after it is.
    later = [pod(f"h{index}", "h") for index in range(2)]
    before = report(node("n", 3), gang("h", 2), gang("g", 3), *later, *waits)
    after = report(node("n", 2), gang("g", 3), gang("h", 2), *waits, *later)
    tries = [{each.name: len(each.attempts) for each in found.pods}["g0"] for found in (before, after)]
    assert tries == [1, 2]


def test_a_group_that_is_removed_is_waited_for(report):
    labelled = [pod(f"c{index}", label="c", cpu="100m") for index in range(2)]
    native = [pod(f"g{index}", "g", cpu="100m") for index in range(2)]
    objects = node("n", 2), gang("g", 2), crd_gang("c", 2), *labelled, *native
    for removed in ("podgroup/{}", "podgroups/default/{}", "PodGroup/{}", "pg/{}"):
        assert placed(report(*objects, remove=[removed.format("c")])) == {"g0", "g1"}
        assert placed(report(*objects, remove=[removed.format("g")])) == {"c0", "c1"}
    with pytest.raises(ClusterFileError, match="there is no PodGroup 'x' in namespace default"):
        report(*objects, remove=["podgroup/x"])


def test_groups_go_with_their_namespace(report):
    elsewhere = {**gang("g", 2), "metadata": {"name": "g", "namespace": "shop"}}
    found = report(node("n", 2), elsewhere, gang("g", 1), pod("a", "g"), remove=["namespace/shop"])
    assert placed(found) == {"a"}


def info(group=None, label=None, cpu=1):
    return make_pod_info("p", cpu=cpu, group=group, labels={} if label is None else {LABEL: label})


@pytest.mark.parametrize("kind", ["native", "crd"])
@pytest.mark.parametrize(("asked", "fits"), [(None, 2), (1, 1), (3, 2)])
def test_of_a_gang_whole_ones_are_counted(simulator, kind, asked, fits):
    group, named = (gang("g", 4), {"group": "g"}) if kind == "native" else (crd_gang("g", 4), {"label": "g"})
    counted = simulator(node("n", 5), node("m", 5), node("o", 1), group)
    counted.run()
    found = how_many_fit(counted, default_configuration(), info(**named), asked)
    assert (found.fits, found.gang_of, sum(found.per_node.values())) == (fits, 4, 4 * fits)
    assert (found.stopped_by is None) == (asked == fits)
    assert capacity_lines(found)[0].startswith(f"Fits:  {fits} more gang{'s' * (fits > 1)} of 4 like default/p")


def test_a_gang_that_cannot_start_fits_not_even_in_part(simulator):
    counted = simulator(node("n", 4), node("m", 4), crd_gang("g", 4))
    found = how_many_fit(counted, default_configuration(), info(label="g", cpu=3), None)
    assert (found.fits, found.per_node) == (0, {})
    assert found.stopped_by == "0/2 nodes are available: 2 Insufficient cpu."


def test_of_a_gang_that_runs_single_pods_are_counted(simulator):
    counted = simulator(node("n", 5), crd_gang("g", 2), *[pod(f"g{index}", label="g") for index in range(2)])
    counted.run()
    found = how_many_fit(counted, default_configuration(), info(label="g"), None)
    assert (found.fits, found.gang_of, found.per_node) == (3, UNSET, {"n": 3})


def test_of_a_group_that_is_nowhere_none_is_counted(simulator):
    counted = simulator(node("n", 5))
    found = how_many_fit(counted, default_configuration(), info(group="lost"), None)
    assert (found.fits, found.stopped_by) == (0, 'waiting for pods\'s pod group "lost" to appear in scheduling queue')


def test_a_group_has_the_priority_of_its_class(report):
    pods = [pod("a", "g", priorityClassName="high"), pod("b", "h")]
    found = report(CLASS, node("n", 1), gang("h", 1), gang("g", 1, priorityClassName="high"), *pods)
    assert placed(found) == {"a"}


@pytest.mark.parametrize("least", [0, -1])
def test_a_min_member_that_the_crd_refuses_is_refused_unless_it_is_stored(report, least):
    group = crd_gang("g", least)
    with pytest.raises(ClusterFileError, match=r"PodGroup.*spec.minMember: must be at least 1"):
        report(node("n", 2), group)
    group["metadata"]["resourceVersion"] = "7"
    assert placed(report(node("n", 2), group, pod("a", label="g"))) == {"a"}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"schedulingPolicy": {"gang": {"minCount": 0}}}, "minCount: must be at least 1"),
        ({"schedulingPolicy": {}}, "must have exactly one of basic and gang"),
        ({"priorityClassName": "none"}, "no PriorityClass with name 'none' was found"),
        ({"schedulingPolicy": {"gang": {"minCount": "many"}}}, "minCount"),
    ],
)
def test_what_the_api_server_would_refuse_is_refused_by_field(report, spec, text):
    with pytest.raises(ClusterFileError, match="PodGroup") as refused:
        report(gang("g", 1, **spec))
    assert text in str(refused.value)


def test_each_member_is_told_what_every_node_said_of_it_beside_those_before_it(simulator):
    found = run_explained(simulator(node("n", 2), gang("g", 3), *[pod(f"g{index}", "g") for index in range(3)]))
    told = {each.name: each.attempts[-1] for each in found.pods}
    assert [told[name].nodes["n"].reasons for name in ("g0", "g1", "g2")] == [[], [], ["Insufficient cpu"]]
    assert told["g2"].explanation.groups[0].plugin == "NodeResourcesFit"
    # Of one that had a place and gave it back no node can be said to be chosen.
    assert told["g0"].explanation is UNSET


def test_members_that_are_placed_are_told_their_scores(simulator):
    objects = node("n", 2), node("m", 2), gang("g", 2), *[pod(f"g{index}", "g") for index in range(2)]
    found = run_explained(simulator(*objects))
    assert all(each.attempts[-1].nodes["n"].scores for each in found.pods if each.attempts[-1].feasible_nodes > 1)
    assert found.pods[0].attempts[-1].feasible_nodes == 2


def test_of_a_large_gang_the_verdicts_of_all_nodes_are_told_of_some_members(simulator):
    pods = [pod(f"g{index}", "g", cpu="10m") for index in range(70)]
    found = run_explained(simulator(node("n", 2), gang("g", 70), *pods))
    assert sum(each.attempts[-1].nodes is not UNSET for each in found.pods) == 64
    assert all(each.attempts[-1].explanation is not UNSET for each in found.pods)


def test_a_simulation_places_gangs_whole_or_not_at_all():
    simulator = Simulator(default_configuration())
    simulator.groups.serve(GroupSource.NATIVE)
    for name in ("fits", "large"):
        simulator.queue.set_group(make_pod_group(name, least=3))
    pods = [make_pod_info(f"{group}-{i}", cpu="1", group=group) for group in ("fits", "large") for i in range(3)]
    simulator.add(ClusterObjects(nodes=[make_node(cpu="5")], pods=pods))
    report = simulator.run()
    placed = {pod.name: pod.attempts[-1].node for pod in report.pods}
    assert [placed[f"fits-{i}"] for i in range(3)] == ["n"] * 3
    assert [placed[f"large-{i}"] for i in range(3)] == [None] * 3
