import pytest
from tests.builders import make_pod_info
from tests.evaluation.clusters import build_framework, default_profile
from tests.plugins.scenes import Scene

from bayplan.config.errors import ConfigurationError
from bayplan.config.plugin_sets import IMPLEMENTED_PLUGINS
from bayplan.config.types import PluginEntry, Plugins, PluginSet, Profile, SchedulerConfiguration
from bayplan.plugins.registry import IN_TREE, build_frameworks


def build(plugins: Plugins):
    scene = Scene()
    return build_framework(Profile(scheduler_name="x", plugins=plugins), scene.cache.nodes)


def plugins(*names: str, **points: PluginSet) -> Plugins:
    enabled = tuple(PluginEntry(name) for name in ("PrioritySort", "DefaultBinder", *names))
    return Plugins(multi_point=PluginSet(enabled=enabled), **points)


def names(entries):
    return [entry.name for entry in entries]


def test_the_registry_holds_exactly_the_plugins_the_configuration_knows():
    assert IN_TREE.keys() == IMPLEMENTED_PLUGINS
    assert all(plugin.name == name for name, plugin in IN_TREE.items())


def test_the_default_profile_runs_kube_schedulers_order_and_weights():
    scene = Scene()
    framework = build_framework(default_profile(), scene.cache.nodes)
    assert names(framework.pre_enqueue) == ["SchedulingGates", "DynamicResources", "DefaultPreemption"]
    assert framework.queue_sort.name == "PrioritySort"
    assert names(framework.pre_filters) == [
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeDeclaredFeatures",
    ]
    assert names(framework.filters) == [
        "NodeName",
        "NodeUnschedulable",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeDeclaredFeatures",
    ]
    assert names(framework.post_filters) == ["DynamicResources", "DefaultPreemption"]
    assert names(framework.pre_scores) == [
        "TaintToleration",
        "NodeAffinity",
        "NodeResourcesFit",
        "VolumeBinding",
        "PodTopologySpread",
        "InterPodAffinity",
        "NodeResourcesBalancedAllocation",
    ]
    assert [(entry.plugin.name, entry.weight) for entry in framework.scores] == [
        ("TaintToleration", 3),
        ("NodeAffinity", 2),
        ("NodeResourcesFit", 1),
        ("VolumeBinding", 1),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 2),
        ("DynamicResources", 2),
        ("NodeResourcesBalancedAllocation", 1),
        ("ImageLocality", 1),
    ]
    for reserving in (framework.reserves, framework.pre_binds):
        assert names(reserving) == ["VolumeBinding", "DynamicResources"]
    assert names(framework.binds) == ["DefaultBinder"]


def test_a_profile_makes_each_plugin_once():
    scene = Scene()
    framework = build_framework(default_profile(), scene.cache.nodes)
    (in_filter,) = [each for each in framework.filters if each.name == "NodeResourcesFit"]
    (in_score,) = [each.plugin for each in framework.scores if each.plugin.name == "NodeResourcesFit"]
    assert in_filter is in_score is framework.plugins["NodeResourcesFit"]


def test_a_plugin_that_does_not_exist_is_named():
    with pytest.raises(ConfigurationError, match='"Missing" does not exist'):
        build(plugins("Missing"))


def test_a_plugin_at_a_point_it_does_not_extend_is_named():
    with pytest.raises(ConfigurationError, match='plugin "NodeName" does not extend ScorePlugin plugin'):
        build(plugins(score=PluginSet(enabled=(PluginEntry("NodeName"),))))


def test_default_preemption_may_be_named_at_pre_enqueue_as_upstream_and_lets_every_pod_in():
    framework = build(plugins(pre_enqueue=PluginSet(enabled=(PluginEntry("DefaultPreemption"),))))
    assert names(framework.pre_enqueue) == ["DefaultPreemption"]
    assert framework.run_pre_enqueue(make_pod_info()).ok


def test_a_profile_needs_one_queue_sort_and_a_binder():
    with pytest.raises(ConfigurationError) as caught:
        build(Plugins(multi_point=PluginSet(enabled=(PluginEntry("NodeName"),))))
    assert 'only one queue sort plugin required for profile with scheduler name "x", but got 0' in str(caught.value)
    assert 'at least one bind plugin is needed for profile with scheduler name "x"' in str(caught.value)


def test_each_profile_of_a_configuration_gets_its_framework():
    nodes = Scene().cache.nodes
    profiles = tuple(Profile(scheduler_name=name, plugins=plugins("NodeName")) for name in ("a", "b"))
    frameworks = build_frameworks(SchedulerConfiguration(profiles=profiles), nodes)
    assert {name: framework.profile_name for name, framework in frameworks.items()} == {"a": "a", "b": "b"}


def test_complaints_of_all_profiles_come_at_once():
    profiles = tuple(Profile(scheduler_name=name, plugins=plugins(f"Missing-{name}")) for name in ("a", "b"))
    with pytest.raises(ConfigurationError) as caught:
        build_frameworks(SchedulerConfiguration(profiles=profiles), Scene().cache.nodes)
    assert "Missing-a" in str(caught.value)
    assert "Missing-b" in str(caught.value)
