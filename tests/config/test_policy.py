"""The legacy Policy: what it lists is on, under today's names."""

# ruff: noqa: E501 - error texts stand whole, so that they can be searched for

import pytest
from tests.config.configurations import ALL_PLUGINS, POLICY, complaints, load
from tests.config.test_plugin_sets import extends

from bayplan.config.plugin_sets import expand_profiles
from bayplan.config.types import (
    BalanceMeasure,
    InterPodAffinityArgs,
    ResourceSpec,
    ScoringStrategyType,
    UtilizationShapePoint,
)

RATIO = "requestedToCapacityRatioArguments"
RATIO_PATH = f"priorities[0].argument.{RATIO}"
PACK = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]


def predicates(*names):
    return POLICY | {"predicates": [{"name": name} for name in names], "priorities": []}


def priorities(*listed):
    return POLICY | {"priorities": [{"weight": 1} | each for each in listed]}


def ratio(shape=None, resources=None, **fields):
    arguments = {"shape": PACK if shape is None else shape}
    if resources is not None:
        arguments["resources"] = resources
    return {"name": "RequestedToCapacityRatioPriority", "argument": {RATIO: arguments}} | fields


def points(*pairs):
    return [{"utilization": utilization, "score": score} for utilization, score in pairs]


def expanded(configuration):
    return expand_profiles(configuration, extends)[configuration.profiles[0].scheduler_name]


def filters(configuration):
    return {entry.name for entry in expanded(configuration)["filter"]}


def scores(configuration):
    return {entry.name: entry.weight for entry in expanded(configuration)["score"]}


def strategy(configuration):
    return configuration.profiles[0].plugin_config["NodeResourcesFit"].scoring_strategy


def weights(configuration):
    """The weights of all that scores, of plugins that `extends` does not know as well."""
    return {entry.name: entry.weight for entry in configuration.profiles[0].plugins.multi_point.enabled if entry.weight}


MANDATORY = {"NodeUnschedulable", "TaintToleration"}


@pytest.mark.parametrize(
    ("name", "plugins"),
    [
        ("GeneralPredicates", {"NodeName", "NodeAffinity", "NodePorts", "NodeResourcesFit"}),
        ("PodFitsResources", {"NodeResourcesFit"}),
        ("PodFitsHostPorts", {"NodePorts"}),
        ("PodFitsPorts", {"NodePorts"}),
        ("HostName", {"NodeName"}),
        ("MatchNodeSelector", {"NodeAffinity"}),
        ("PodToleratesNodeTaints", set()),
        ("CheckNodeUnschedulable", set()),
        ("CheckNodeCondition", set()),
        ("CheckNodeMemoryPressure", set()),
        ("CheckNodeDiskPressure", set()),
        ("CheckNodePIDPressure", set()),
    ],
)
def test_a_predicate_switches_its_filters_on(tmp_path, name, plugins):
    configuration = load(tmp_path, predicates(name))
    assert filters(configuration) == plugins | MANDATORY
    assert scores(configuration) == {}


@pytest.mark.parametrize(
    ("name", "plugin"),
    [
        ("LeastRequestedPriority", "NodeResourcesFit"),
        ("MostRequestedPriority", "NodeResourcesFit"),
        ("RequestedToCapacityRatioPriority", "NodeResourcesFit"),
        ("BalancedResourceAllocation", "NodeResourcesBalancedAllocation"),
        ("NodeAffinityPriority", "NodeAffinity"),
        ("TaintTolerationPriority", "TaintToleration"),
        ("ImageLocalityPriority", "ImageLocality"),
    ],
)
def test_a_priority_switches_its_score_on_with_its_weight(tmp_path, name, plugin):
    configuration = load(tmp_path, POLICY | {"predicates": [], "priorities": [{"name": name, "weight": 7}]})
    assert scores(configuration) == {plugin: 7}
    assert filters(configuration) == MANDATORY


def test_equal_priority_scores_nothing(tmp_path):
    assert scores(load(tmp_path, priorities({"name": "EqualPriority"}))) == {}


def test_empty_lists_leave_only_what_1_16_never_switched_off(tmp_path):
    configuration = load(tmp_path, POLICY | {"predicates": [], "priorities": []})
    assert filters(configuration) == MANDATORY
    assert scores(configuration) == {}
    assert [entry.name for entry in expanded(configuration)["queue_sort"]] == ["PrioritySort"]
    assert [entry.name for entry in expanded(configuration)["bind"]] == ["DefaultBinder"]
    assert [entry.name for entry in expanded(configuration)["pre_enqueue"]] == ["SchedulingGates"]


def test_missing_lists_mean_the_defaults_of_1_16(tmp_path):
    configuration = load(tmp_path, POLICY)
    assert filters(configuration) == MANDATORY | {"NodeName", "NodeAffinity", "NodePorts", "NodeResourcesFit"}
    assert set(weights(configuration)) == set(scores(configuration)) | {"InterPodAffinity", "PodTopologySpread"}
    assert scores(configuration) == {
        "NodeResourcesFit": 1,
        "NodeResourcesBalancedAllocation": 1,
        "NodeAffinity": 1,
        "TaintToleration": 1,
        "ImageLocality": 1,
    }
    assert strategy(configuration).type is ScoringStrategyType.LEAST_ALLOCATED


def test_nothing_leaks_from_filters_to_scores_or_back(tmp_path):
    content = predicates("MatchNodeSelector") | priorities({"name": "TaintTolerationPriority"}, ratio())
    points_of = expanded(load(tmp_path, content))
    assert {entry.name for entry in points_of["pre_filter"]} == {"NodeAffinity"}
    assert {entry.name for entry in points_of["filter"]} == {"NodeAffinity"} | MANDATORY
    assert {entry.name for entry in points_of["pre_score"]} == {"NodeResourcesFit", "TaintToleration"}
    assert {entry.name for entry in points_of["score"]} == {"NodeResourcesFit", "TaintToleration"}


def test_the_ratio_priority_becomes_the_fit_strategy(tmp_path):
    resources = [{"name": "intel.com/foo", "weight": 5}, {"name": "CPU", "weight": 3}, {"name": "Memory"}]
    configuration = load(tmp_path, priorities(ratio(resources=resources, weight=2)))
    assert strategy(configuration).type is ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO
    assert strategy(configuration).shape == (UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10))
    assert strategy(configuration).resources == (
        ResourceSpec("intel.com/foo", 5),
        ResourceSpec("cpu", 3),
        ResourceSpec("memory", 1),
    )
    assert scores(configuration) == {"NodeResourcesFit": 2}


def test_the_ratio_priority_may_have_any_name(tmp_path):
    assert scores(load(tmp_path, priorities(ratio(name="MyPacking", weight=3)))) == {"NodeResourcesFit": 3}


def test_the_ratio_priority_without_arguments_spreads_as_it_did(tmp_path):
    configuration = load(tmp_path, priorities({"name": "RequestedToCapacityRatioPriority"}))
    assert strategy(configuration).shape == (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
    assert strategy(configuration).resources == (ResourceSpec("cpu"), ResourceSpec("memory"))


def test_a_shape_on_a_hundred_means_the_same_on_ten(tmp_path):
    configuration = load(tmp_path, priorities(ratio(points((0, 100), (50, 30), (100, 0)))))
    assert [point.score for point in strategy(configuration).shape] == [10, 3, 0]


def test_a_shape_up_to_ten_is_taken_as_it_is(tmp_path):
    assert [point.score for point in strategy(load(tmp_path, priorities(ratio(points((0, 10)))))).shape] == [10]


@pytest.mark.parametrize("shape", [points((0, 15)), points((0, 110)), points((0, 100), (100, 5))])
def test_a_shape_that_fits_neither_scale_is_an_error(tmp_path, shape):
    (line, *_) = complaints(tmp_path, priorities(ratio(shape)))
    score = shape[0]["score"]
    assert line == f"{RATIO_PATH}.shape[0].score: Invalid value: {score}: not in valid range [0, 10]"


def test_its_profile_is_called_bayplan_unless_renamed(tmp_path):
    assert load(tmp_path, POLICY).profiles[0].scheduler_name == "bayplan"
    assert load(tmp_path, POLICY, scheduler_name="old").profiles[0].scheduler_name == "old"


def test_yaml_is_fine_too(tmp_path):
    text = "kind: Policy\napiVersion: v1\npriorities:\n- {name: MostRequestedPriority, weight: 2}\n"
    assert strategy(load(tmp_path, text)).type is ScoringStrategyType.MOST_ALLOCATED


def test_a_trailing_comma_as_in_the_old_documentation_is_fine(tmp_path):
    assert load(
        tmp_path, '{"kind": "Policy", "apiVersion": "v1", "priorities": [{"name": "EqualPriority", "weight": 1,},],}'
    )


def test_always_check_all_predicates_is_said_to_have_no_effect(tmp_path):
    notes = []
    content = POLICY | {"alwaysCheckAllPredicates": True}
    assert load(tmp_path, content, notes=notes) == load(tmp_path, POLICY)
    assert list(map(str, notes)) == ["alwaysCheckAllPredicates: has no effect: the first filter that rejects is named"]


@pytest.mark.parametrize("content", [POLICY, priorities({"name": "BalancedResourceAllocation"})])
def test_the_ratio_is_off_unless_the_policy_names_it(tmp_path, content):
    kinds = {strategy(load(tmp_path, content)).type}
    assert kinds == {ScoringStrategyType.LEAST_ALLOCATED}


def test_several_scores_by_resources_keep_their_weights_in_one_plugin(tmp_path):
    notes = []
    listed = [{"name": "LeastRequestedPriority", "weight": 3}, ratio(weight=2), ratio(name="Second", weight=5)]
    configuration = load(tmp_path, priorities(*listed), notes=notes)
    assert scores(configuration) == {"NodeResourcesFit": 1}
    args = configuration.profiles[0].plugin_config["NodeResourcesFit"]
    assert [(each.weight, each.strategy.type) for each in args.scoring_strategies] == [
        (3, ScoringStrategyType.LEAST_ALLOCATED),
        (2, ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO),
        (5, ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO),
    ]
    detail = "stands in bayplan.io.scoringStrategies beside another, which kube-scheduler does not have"
    assert list(map(str, notes)) == [f"priorities[{index}].argument.{RATIO}: {detail}" for index in (1, 2)]


def test_balanced_allocation_keeps_its_measure(tmp_path):
    configuration = load(tmp_path, priorities({"name": "BalancedResourceAllocation"}))
    args = configuration.profiles[0].plugin_config["NodeResourcesBalancedAllocation"]
    assert args.measure is BalanceMeasure.RESULT


@pytest.mark.parametrize(("given", "weight"), [(9, 9), (0, 1)])
def test_a_hard_affinity_weight_of_zero_is_none(tmp_path, given, weight):
    content = POLICY | {"hardPodAffinitySymmetricWeight": given}
    config = load(tmp_path, content).profiles[0].plugin_config
    assert config["InterPodAffinity"] == InterPodAffinityArgs(weight)


def test_names_of_later_plugins_work_once_the_plugins_are_there(tmp_path):
    content = priorities({"name": "InterPodAffinityPriority", "weight": 4}) | {"hardPodAffinitySymmetricWeight": 9}
    profile = load(tmp_path, content, known_plugins=ALL_PLUGINS).profiles[0]
    assert profile.plugin_config["InterPodAffinity"] == InterPodAffinityArgs(9)
    enabled = {entry.name: entry.weight for entry in profile.plugins.multi_point.enabled}
    assert enabled["InterPodAffinity"] == 4
    assert "DefaultPreemption" in enabled


# A priority, and how the error goes on after its path.
_PRIORITIES = [
    ({"name": "Foo"}, '.name: Invalid value: "Foo": does not exist'),
    ({}, ".name: Required value"),
    (
        {"name": "EqualPriority", "weight": 0},
        ".weight: Invalid value: 0: should have a positive weight applied to it",
    ),
    (
        {"name": "EqualPriority", "weight": None},
        ".weight: Invalid value: 0: should have a positive weight applied to it",
    ),
    (
        {"name": "EqualPriority", "weight": 2**31},
        ".weight: Invalid value: 2147483648: is more than 2147483647, the largest weight of today's plugins",
    ),
    (
        {"name": "EqualPriority", "weight": 2**63},
        f".weight: Invalid value: {2**63}: does not fit into 64 bits",
    ),
    ({"name": "Mine", "argument": {"labelPreference": {}}}, ".argument.labelPreference.label: Required value"),
    (
        {"name": "Mine", "argument": {}},
        ".argument: must hold one of requestedToCapacityRatioArguments, labelPreference, serviceAntiAffinity",
    ),
    ({"name": "Mine", "argument": {"x": {}}}, ".argument.x: unknown field"),
    (ratio([]), f".argument.{RATIO}.shape: Required value: at least one point must be specified"),
    (
        ratio(resources=[{"name": "cpu"}, {"name": "CPU", "weight": 2}]),
        f'.argument.{RATIO}.resources[1].name: Invalid value: "CPU": is another spelling of cpu, which is listed too',
    ),
    (
        ratio(resources=[{"name": "cpu", "weight": 101}, {"name": "memory"}]),
        f".argument.{RATIO}.resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range (0, 100]",
    ),
    (
        ratio(resources=[{"name": "CPU", "weight": -1}]),
        f".argument.{RATIO}.resources[0].weight: Invalid value: -1: resource weight of cpu not in valid range (0, 100]",
    ),
]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        *((priorities(each), f"priorities[0]{error}") for each, error in _PRIORITIES),
        (
            predicates("CheckServiceAffinity"),
            'predicates[0].name: Invalid value: "CheckServiceAffinity": needs the argument serviceAffinity, which has no successor',
        ),
        (predicates("HostName", "Foo"), 'predicates[1].name: Invalid value: "Foo": does not exist'),
        (predicates(None), "predicates[0].name: Required value"),
        (
            POLICY | {"hardPodAffinitySymmetricWeight": 101},
            "hardPodAffinitySymmetricWeight: Invalid value: 101: not in valid range [0, 100]",
        ),
        (POLICY | {"prioritys": []}, 'prioritys: unknown field, did you mean "priorities"?'),
        (POLICY | {"predicates": {}}, "predicates: Invalid value: object: must be a list"),
    ],
)
def test_a_mistake_is_an_error_at_its_field(tmp_path, content, expected):
    assert expected in complaints(tmp_path, content)


def test_of_a_predicate_listed_twice_the_last_one_counts(tmp_path):
    notes = []
    mine = [{"name": "Mine", "argument": {"labelsPresence": {"labels": [label], "presence": True}}} for label in "ab"]
    content = POLICY | {"predicates": [mine[0], {"name": "HostName"}, mine[1], {"name": "HostName"}], "priorities": []}
    alone = content | {"predicates": [mine[1], {"name": "HostName"}]}
    assert load(tmp_path, content, notes=notes) == load(tmp_path, alone)
    assert [str(note) for note in notes if "again" in str(note)] == [
        "predicates[0]: is listed again at predicates[2], which counts",
        "predicates[1]: is listed again at predicates[3], which counts",
    ]


def test_of_a_priority_listed_twice_the_last_one_counts(tmp_path):
    notes = []
    listed = [
        {"name": "SelectorSpreadPriority", "weight": 2},
        ratio(name="Mine", weight=3),
        {"name": "SelectorSpreadPriority", "weight": 5},
        {"name": "Mine", "weight": 7},
    ]
    alone = priorities(listed[2], ratio(name="Mine", weight=7))
    assert load(tmp_path, priorities(*listed), notes=notes) == load(tmp_path, alone)
    # Without an argument it is what the name stood for before.
    assert [note.path for note in notes] == ["priorities[0]", "priorities[1]", "priorities[2].name"]


def test_what_does_not_count_is_checked_all_the_same(tmp_path):
    wrong = {"name": "EqualPriority", "weight": 0}
    (line,) = complaints(tmp_path, priorities(wrong, {"name": "EqualPriority"}))
    assert line.startswith("priorities[0].weight: Invalid value: 0")


def test_weights_of_the_ratio_beyond_a_hundred_keep_their_ratio(tmp_path):
    def weights(cpu, memory):
        return priorities(ratio(resources=[{"name": "cpu", "weight": cpu}, {"name": "memory", "weight": memory}]))

    assert load(tmp_path, weights(3000, 60_000)) == load(tmp_path, weights(1, 20))
