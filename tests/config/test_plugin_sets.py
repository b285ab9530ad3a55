"""Merging with the default plugins and expanding multiPoint."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.config.configurations import V1, load

from bayplan.config.errors import ConfigurationError
from bayplan.config.plugin_sets import (
    DEFAULT_PLUGINS,
    IMPLEMENTED_PLUGINS,
    OWN_PLUGINS,
    UPSTREAM_PLUGINS,
    expand_plugins,
    expand_profiles,
    merge_plugin_set,
    merge_plugins,
)
from bayplan.config.types import EXTENSION_POINTS, PluginEntry, Plugins, PluginSet

FILTERS = {"NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit"}
SCORES = {"TaintToleration", "NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality"}
EXTENDED = {
    "pre_enqueue": {"SchedulingGates"},
    "queue_sort": {"PrioritySort", "OtherSort"},
    "pre_filter": {"NodeAffinity", "NodePorts", "NodeResourcesFit"},
    "filter": FILTERS,
    "pre_score": SCORES - {"ImageLocality"},
    "score": SCORES,
    "bind": {"DefaultBinder"},
}


def extends(name: str, point: str) -> bool:
    if name not in IMPLEMENTED_PLUGINS | {"OtherSort"}:
        raise KeyError(name)
    return name in EXTENDED.get(point, ())


def entries(*names: str | tuple[str, int]) -> tuple[PluginEntry, ...]:
    return tuple(PluginEntry(name) if isinstance(name, str) else PluginEntry(*name) for name in names)


def plugin_set(enabled=(), disabled=()) -> PluginSet:
    return PluginSet(entries(*enabled), entries(*disabled))


def expand(**custom: PluginSet):
    plugins = merge_plugins(DEFAULT_PLUGINS, Plugins(**custom))
    return expand_plugins(plugins, extends, scheduler_name="x")


def expand_alone(**sets: PluginSet):
    """What runs where of these sets alone, without the default plugins but for those there must be."""
    needed = {"queue_sort": plugin_set(["PrioritySort"]), "bind": plugin_set(["DefaultBinder"])}
    return expand_plugins(Plugins(**needed, **sets), extends, scheduler_name="x")


def names(expanded, point: str) -> list[str]:
    return [entry.name for entry in expanded[point]]


def weights(expanded) -> list[tuple[str, int]]:
    return [(entry.name, entry.weight) for entry in expanded["score"]]


def complaints(**custom: PluginSet) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        expand(**custom)
    return str(caught.value).split("\n")


DEFAULTS = plugin_set([("a", 1), ("b", 2), "c"])


@pytest.mark.parametrize(
    ("custom", "merged"),
    [
        (plugin_set(), DEFAULTS),
        (plugin_set(["d"]), plugin_set([("a", 1), ("b", 2), "c", "d"])),
        (plugin_set([("b", 7), "d"]), plugin_set([("a", 1), ("b", 7), "c", "d"])),
        (plugin_set(["b"]), plugin_set([("a", 1), "b", "c"])),
        (plugin_set(disabled=["b"]), plugin_set([("a", 1), "c"], ["b"])),
        (plugin_set(disabled=["x"]), plugin_set([("a", 1), ("b", 2), "c"], ["x"])),
        (plugin_set(["b"], ["b"]), plugin_set([("a", 1), "c", "b"], ["b"])),
        (plugin_set(["d", "b"], ["*"]), plugin_set(["d", "b"], ["*"])),
    ],
)
def test_a_set_merges_with_the_default_set(custom, merged):
    assert merge_plugin_set(DEFAULTS, custom) == merged


_some_entries = st.lists(st.sampled_from("abcde"), unique=True).flatmap(
    lambda chosen: st.tuples(*(st.builds(PluginEntry, st.just(name), st.integers(0, 3)) for name in chosen))
)
_some_names = st.lists(st.sampled_from("abcde*"), unique=True).map(lambda chosen: entries(*chosen))


@given(st.builds(PluginSet, _some_entries, _some_names))
def test_merging_again_changes_nothing(custom):
    merged = merge_plugin_set(DEFAULTS, custom)
    assert merge_plugin_set(DEFAULTS, merged) == merged


def test_defaults_expand_in_kube_schedulers_order_with_its_weights():
    expanded = expand()
    assert expanded.keys() == EXTENSION_POINTS.keys()
    assert names(expanded, "filter") == [
        "NodeName",
        "NodeUnschedulable",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
    ]
    assert weights(expanded) == [
        ("TaintToleration", 3),
        ("NodeAffinity", 2),
        ("NodeResourcesFit", 1),
        ("NodeResourcesBalancedAllocation", 1),
        ("ImageLocality", 1),
    ]
    assert names(expanded, "post_filter") == []


def test_plugins_of_the_point_that_are_in_multi_point_come_first_and_the_others_last():
    expanded = expand_alone(
        score=plugin_set([("ImageLocality", 5), ("NodeResourcesFit", 4), "NodeAffinity"]),
        multi_point=plugin_set([("TaintToleration", 3), ("NodeAffinity", 2), ("ImageLocality", 9)]),
    )
    assert weights(expanded) == [
        ("ImageLocality", 5),
        ("NodeAffinity", 1),
        ("TaintToleration", 3),
        ("NodeResourcesFit", 4),
    ]


def test_a_points_disabled_list_holds_multi_point_back_there_only():
    expanded = expand(score=plugin_set(disabled=["NodeAffinity"]))
    assert "NodeAffinity" not in names(expanded, "score")
    assert "NodeAffinity" in names(expanded, "filter")


def test_disabling_everything_at_a_point_leaves_what_it_enables():
    expanded = expand(score=plugin_set([("NodeResourcesFit", 2)], ["*"]))
    assert weights(expanded) == [("NodeResourcesFit", 2)]


def test_a_plugin_disabled_and_enabled_at_a_point_runs_last():
    expanded = expand(score=plugin_set(["TaintToleration"], ["TaintToleration"]))
    assert weights(expanded)[-1] == ("TaintToleration", 1)


def test_the_points_weight_wins_over_multi_points():
    expanded = expand(multi_point=plugin_set([("NodeResourcesFit", 7)]), score=plugin_set([("NodeResourcesFit", 0)]))
    assert ("NodeResourcesFit", 1) in weights(expanded)


def test_start_up_errors_have_kube_schedulers_texts_and_come_all_at_once():
    assert complaints(
        queue_sort=plugin_set(disabled=["*"]), bind=plugin_set(disabled=["*"]), filter=plugin_set(["ImageLocality"])
    ) == [
        'plugins.filter: plugin "ImageLocality" does not extend FilterPlugin plugin',
        'plugins.queueSort: only one queue sort plugin required for profile with scheduler name "x", but got 0',
        'plugins.bind: at least one bind plugin is needed for profile with scheduler name "x"',
    ]


def test_two_queue_sorts_are_one_too_many():
    assert complaints(queue_sort=plugin_set(["OtherSort"])) == [
        'plugins.queueSort: only one queue sort plugin required for profile with scheduler name "x", but got 2'
    ]


def test_a_plugin_nobody_knows_does_not_exist():
    with pytest.raises(ConfigurationError, match=r'plugins.filter: FilterPlugin "Foo" does not exist'):
        expand_alone(filter=plugin_set(["Foo"]))


@pytest.mark.parametrize("where", ["filter", "multi_point"])
def test_a_plugin_listed_twice_is_already_registered(where):
    message = r'plugins.filter: plugin "NodeName" already registered as "FilterPlugin"'
    with pytest.raises(ConfigurationError, match=message):
        expand_alone(**{where: plugin_set(["NodeName", "NodeName"])})


OVERFLOW = ["plugins.score: score plugins: total score of Score plugins could overflow"]


@pytest.mark.parametrize("weight", [2**63 // 100, -1])
def test_weights_whose_total_overflows_are_an_error(weight):
    assert complaints(score=plugin_set([("TaintToleration", weight)])) == OVERFLOW


def test_a_negative_weight_that_comes_last_does_not_overflow():
    # As in kube-scheduler, where the sum is checked before each weight is added.
    assert ("ImageLocality", -1) in weights(expand(multi_point=plugin_set([("ImageLocality", -1)])))


def several_strategies(weight):
    """A file whose NodeResourcesFit has this weight, and two strategies of the largest weight."""
    own = {"scoringStrategies": [{"type": kind, "weight": 2**31 - 1} for kind in ("LeastAllocated", "MostAllocated")]}
    config = [{"name": "NodeResourcesFit", "args": {"bayplan.io": own}}]
    plugins = {"score": {"enabled": [{"name": "NodeResourcesFit", "weight": weight}]}}
    return V1 | {"profiles": [{"plugins": plugins, "pluginConfig": config}]}


def test_the_weights_of_several_strategies_count_to_the_total(tmp_path):
    assert expand_profiles(load(tmp_path, several_strategies(1)), extends)
    with pytest.raises(ConfigurationError, match="could overflow"):
        expand_profiles(load(tmp_path, several_strategies(2**31 - 1)), extends)


def test_their_overflow_is_told_together_with_other_errors(tmp_path):
    content = several_strategies(2**31 - 1) | {"parallelism": 0}
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, content, extends=extends)
    assert [error.path for error in caught.value.errors] == ["parallelism", "profiles[0].plugins.score"]


def test_all_profiles_errors_come_at_once_with_their_paths(tmp_path):
    no_binder = {"plugins": {"bind": {"disabled": [{"name": "*"}]}}}
    content = V1 | {"profiles": [{"schedulerName": "a"} | no_binder, {"schedulerName": "b"} | no_binder]}
    with pytest.raises(ConfigurationError) as caught:
        expand_profiles(load(tmp_path, content), extends)
    assert str(caught.value).split("\n") == [
        f'profiles[{index}].plugins.bind: at least one bind plugin is needed for profile with scheduler name "{name}"'
        for index, name in enumerate("ab")
    ]


def test_each_profile_is_expanded_by_name(tmp_path):
    content = V1 | {"profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}]}
    assert expand_profiles(load(tmp_path, content), extends).keys() == {"a", "b"}


def test_the_default_set_is_kube_schedulers_and_all_of_it_is_there():
    assert IMPLEMENTED_PLUGINS - OWN_PLUGINS < UPSTREAM_PLUGINS
    assert {entry.name for entry in DEFAULT_PLUGINS.multi_point.enabled} < IMPLEMENTED_PLUGINS
