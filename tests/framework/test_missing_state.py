"""Profiles that switch off a PreFilter or PreScore whose findings the plugin's filter or score reads."""

from dataclasses import replace

import pytest
from tests.builders import make_node, make_pod, make_pod_info
from tests.plugins.preemption.worlds import World

from bayplan.api.objects import Volume
from bayplan.config.load import default_configuration
from bayplan.config.types import PluginEntry, PluginSet
from bayplan.framework.status import Code
from bayplan.scheduler.decision import FitError

FILTERS = {
    "NodePorts": 'reading "PreFilterNodePorts" from cycleState: not found',
    "NodeResourcesFit": 'error reading "PreFilterNodeResourcesFit" from cycleState: not found',
    "VolumeRestrictions": 'cannot read "PreFilterVolumeRestrictions" from cycleState',
    "VolumeBinding": "not found",
    "PodTopologySpread": 'reading "PreFilterPodTopologySpread" from cycleState: not found',
    "InterPodAffinity": 'error reading "PreFilterInterPodAffinity" from cycleState: not found',
    "NodeDeclaredFeatures": 'error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found',
    "DynamicResources": "not found",
}
SCORES = {
    "TaintToleration": 'failed to read "PreScoreTaintToleration" from cycleState: not found',
    "PodTopologySpread": 'error reading "PreScorePodTopologySpread" from cycleState: not found',
    "InterPodAffinity": 'failed to read "PreScoreInterPodAffinity" from cycleState: not found',
}


def world(*objects, **disabled):
    """A cluster under the default profile without these plugins at these points."""
    configuration = default_configuration()
    (profile,) = configuration.profiles
    sets = {point: PluginSet(disabled=tuple(map(PluginEntry, names))) for point, names in disabled.items()}
    profile = replace(profile, plugins=replace(profile.plugins, **sets))
    return World(*objects, configuration=replace(configuration, profiles=(profile,)))


def two_nodes():
    return make_node("n1"), make_node("n2")


def failure(made, pod=None):
    with pytest.raises(RuntimeError) as caught:
        made.schedule(pod or make_pod())
    return str(caught.value)


@pytest.mark.parametrize("plugin", FILTERS)
def test_a_filter_without_its_pre_filter_fails_every_pod(plugin):
    made = world(*two_nodes(), pre_filter=[plugin])
    for _ in range(2):
        assert failure(made) == f'running "{plugin}" filter plugin: {FILTERS[plugin]}'


@pytest.mark.parametrize("plugin", ["NodeAffinity", "NodeVolumeLimits", "VolumeZone"])
def test_these_filters_do_without(plugin):
    assert world(*two_nodes(), pre_filter=[plugin]).schedule(make_pod()).node_name == "n1"


def test_nodes_that_an_earlier_filter_rejects_never_come_to_it():
    cordoned = make_node("n1", unschedulable=True), make_node("n2", unschedulable=True)
    outcome = world(*cordoned, pre_filter=["NodeResourcesFit"]).schedule(make_pod())
    assert isinstance(outcome, FitError)
    assert outcome.message.startswith("0/2 nodes are available: 2 node(s) were unschedulable.")


def test_without_the_filter_nobody_misses_its_pre_filter():
    made = world(*two_nodes(), pre_filter=["NodePorts"], filter=["NodePorts"])
    assert made.schedule(make_pod(host_ports=[80])).node_name == "n1"


@pytest.mark.parametrize("plugin", SCORES)
def test_a_score_without_its_pre_score_fails_every_pod_that_is_scored(plugin):
    made = world(*two_nodes(), pre_score=[plugin])
    for _ in range(2):
        assert failure(made) == f'running Score plugins: plugin "{plugin}" failed with: {SCORES[plugin]}'


@pytest.mark.parametrize("plugin", SCORES)
def test_nothing_is_scored_where_one_node_fits(plugin):
    assert world(make_node("n1"), pre_score=[plugin]).schedule(make_pod()).node_name == "n1"


@pytest.mark.parametrize("plugin", ["NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation"])
def test_these_scores_do_without(plugin):
    made = world(*two_nodes(), make_pod(cpu="2", node="n2", uid="u"), pre_score=[plugin])
    assert made.schedule(make_pod(cpu="1")).node_name == "n2"


def test_the_first_plugin_that_cannot_score_is_named():
    assert SCORES["TaintToleration"] in failure(world(*two_nodes(), pre_score=["*"]))


def test_volume_binding_fails_wherever_else_it_reads_what_its_pre_filter_found():
    off = {"pre_filter": ["VolumeBinding"], "filter": ["VolumeBinding"]}
    assert failure(world(*two_nodes(), **off)) == 'running PreScore plugin "VolumeBinding": not found'
    off["pre_score"] = ["VolumeBinding"]
    expected = 'running Score plugins: plugin "VolumeBinding" failed with: not found'
    assert failure(world(*two_nodes(), **off)) == expected
    off["score"] = ["VolumeBinding"]
    made = world(*two_nodes(), **off)
    node_name = made.schedule(make_pod()).node_name
    status = made.framework.run_reserve({}, make_pod_info(), node_name)
    assert (status.code, status.message) == (Code.ERROR, 'running Reserve plugin "VolumeBinding": not found')
    made.framework.run_unreserve({}, make_pod_info(), node_name)


def test_a_pod_keeps_away_from_disks_in_use_before_it_fails():
    made = world(*two_nodes(), pre_filter=["VolumeRestrictions"])
    disk = {"volumes": [Volume(gce_persistent_disk={"pdName": "d"})]}
    made.add(make_pod("a", uid="a", node="n1", **disk), make_pod("b", uid="b", node="n2", **disk))
    outcome = made.schedule(make_pod(**disk))
    assert outcome.message.startswith("0/2 nodes are available: 2 node(s) had no available disk.")
    assert failure(made).endswith(FILTERS["VolumeRestrictions"])
