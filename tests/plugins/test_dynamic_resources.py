"""DynamicResources for pods without claims, in profiles that run it whole and in those that run parts of it."""

import pytest
from tests.builders import make_node, make_pod, make_pod_info
from tests.plugins.preemption.worlds import World
from tests.plugins.volume_scenes import claim, pod_with, volume

from bayplan.api.storage_objects import PersistentVolume, PersistentVolumeClaim
from bayplan.config.load import load_configuration
from bayplan.explain.trace import trace_of
from bayplan.framework.status import Code
from bayplan.scheduler.decision import FitError, Placement

NOT_HELPFUL = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
UNBOUND = '0/2 nodes are available: persistentvolumeclaim "c" not found.'


@pytest.fixture
def world(tmp_path):
    def world(plugins: str = "{}") -> World:
        path = tmp_path / "config.yaml"
        path.write_text(
            "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, "
            f"profiles: [{{schedulerName: default-scheduler, plugins: {plugins}}}]}}"
        )
        nodes = (make_node("a", cpu="4"), make_node("b", cpu="4"))
        return World(*nodes, configuration=load_configuration(path))

    return world


def message(world, pod):
    outcome = world.schedule(pod)
    assert isinstance(outcome, FitError)
    return outcome.message


def test_a_pod_without_claims_is_told_what_preemption_says_and_nothing_else(world):
    assert message(world(), make_pod(cpu="9")) == f"0/2 nodes are available: 2 Insufficient cpu. {NOT_HELPFUL}"


def test_a_pod_that_an_earlier_prefilter_rejects_for_good_is_told_not_found_and_preempts_nobody(world):
    cluster = world()
    cluster.add(make_pod("low", node="a", cpu="4", priority=1))
    pod = pod_with("c", cpu="4", priority=9)
    assert message(cluster, pod) == f"{UNBOUND} not found"
    assert cluster.preempt(pod) == (None, [])


def test_it_forgets_that_its_prefilter_was_run_in_an_earlier_attempt(world):
    cluster = world()
    pod = pod_with("c", cpu="9")
    assert message(cluster, pod) == f"{UNBOUND} not found"
    claims = cluster.cache.listers.of(PersistentVolumeClaim)
    claims.set(claim("c", bound=True, volume="v"))
    cluster.cache.listers.of(PersistentVolume).set(volume("v"))
    assert message(cluster, pod).endswith(NOT_HELPFUL)
    claims.delete("default/c")
    assert message(cluster, pod) == f"{UNBOUND} not found"


def test_a_prefilter_behind_it_leaves_preemption_its_say(world):
    behind = "{preFilter: {enabled: [{name: DynamicResources}, {name: VolumeBinding}]}}"
    assert message(world(behind), pod_with("c")) == f"{UNBOUND} {NOT_HELPFUL}"


@pytest.mark.parametrize(
    "plugins",
    [
        "{multiPoint: {disabled: [{name: DynamicResources}]}}",
        "{postFilter: {disabled: [{name: DynamicResources}]}}",
    ],
)
def test_a_profile_without_its_postfilter_leaves_preemption_its_say(world, plugins):
    assert message(world(plugins), pod_with("c")) == f"{UNBOUND} {NOT_HELPFUL}"


def test_a_postfilter_before_it_makes_room_first(world):
    cluster = world("{postFilter: {enabled: [{name: DefaultPreemption}, {name: DynamicResources}]}}")
    cluster.add(make_pod("low", node="a", cpu="4", priority=1), make_pod("high", node="b", cpu="4", priority=99))
    assert cluster.preempt(make_pod(cpu="4", priority=9)) == ("a", ["low"])


def test_a_postfilter_before_it_that_clears_the_nomination_clears_it(world):
    cluster = world("{postFilter: {enabled: [{name: DefaultPreemption}, {name: DynamicResources}]}}")
    assert cluster.preempt(make_pod(cpu="9")) == ("", [])


@pytest.mark.parametrize(
    ("points", "text"),
    [
        (["preFilter"], 'running "DynamicResources" filter plugin: not found'),
        (["preFilter", "filter"], 'running Score plugins: plugin "DynamicResources" failed with: not found'),
    ],
)
def test_without_its_prefilter_what_remains_of_it_fails_every_pod(world, points, text):
    disabled = ", ".join(f"{point}: {{disabled: [{{name: DynamicResources}}]}}" for point in points)
    with pytest.raises(RuntimeError) as raised:
        world(f"{{{disabled}}}").schedule(make_pod())
    assert str(raised.value) == text


def test_without_its_prefilter_its_postfilter_says_not_found_to_all(world):
    off = "{disabled: [{name: DynamicResources}]}"
    cluster = world(f"{{preFilter: {off}, filter: {off}, score: {off}}}")
    assert message(cluster, make_pod(cpu="9")) == "0/2 nodes are available: 2 Insufficient cpu. not found"


def test_without_its_prefilter_nothing_can_be_reserved(world):
    off = "{disabled: [{name: DynamicResources}]}"
    cluster = world(f"{{preFilter: {off}, filter: {off}, score: {off}}}")
    placement = cluster.schedule(make_pod())
    assert isinstance(placement, Placement)
    status = cluster.framework.run_reserve(placement.state, make_pod_info(), placement.node_name)
    assert (status.code, status.message) == (Code.ERROR, 'running Reserve plugin "DynamicResources": not found')
    with pytest.raises(RuntimeError, match="not found"):
        cluster.framework.run_pre_bind(placement.state, make_pod_info(), placement.node_name)


def test_a_pod_without_claims_is_reserved_and_bound_without_effects(world):
    cluster = world()
    placement = cluster.schedule(make_pod())
    assert isinstance(placement, Placement)
    pod = make_pod_info()
    assert cluster.framework.run_pre_enqueue(pod).ok
    assert cluster.framework.run_reserve(placement.state, pod, placement.node_name).ok
    assert cluster.framework.run_pre_bind(placement.state, pod, placement.node_name) == []
    cluster.framework.run_unreserve(placement.state, pod, placement.node_name)


def test_it_scores_all_nodes_alike_as_kube_scheduler_shows(world):
    decision = world().decide(make_pod())
    assert isinstance(decision.outcome, Placement)
    assert {verdict.scores["DynamicResources"] for verdict in trace_of(decision).values()} == {0}
