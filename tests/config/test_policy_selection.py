"""Arguments and spreads of a Policy, as arguments of today's plugins."""

import pytest
from tests.config.configurations import POLICY, complaints, load
from tests.config.test_policy import filters, ratio, weights

from bayplan.api.objects import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from bayplan.config.convert import to_minimal_yaml
from bayplan.config.types import PodTopologySpreadDefaulting


def scoring(*listed):
    return POLICY | {"predicates": [], "priorities": [{"weight": 1} | each for each in listed]}


def labels_presence(*labels, presence=True, name="Mine"):
    return {"name": name, "argument": {"labelsPresence": {"labels": list(labels), "presence": presence}}}


def label_preference(label="a", name="Mine", presence=True, **fields):
    return {"name": name, "argument": {"labelPreference": {"label": label, "presence": presence}}} | fields


def service_anti_affinity(label="zone", name="Mine", **fields):
    return {"name": name, "argument": {"serviceAntiAffinity": {"label": label}}} | fields


def args(configuration, plugin):
    return configuration.profiles[0].plugin_config[plugin]


def requirement(key, operator="Exists"):
    return NodeSelectorRequirement(key, operator)


def test_labels_that_nodes_must_have_or_lack_are_one_added_affinity(tmp_path):
    listed = [labels_presence("a", "b"), labels_presence("c", presence=False, name="Second")]
    configuration = load(tmp_path, POLICY | {"predicates": listed, "priorities": []})
    assert "NodeAffinity" in filters(configuration)
    term = NodeSelectorTerm([requirement("a"), requirement("b"), requirement("c", "DoesNotExist")])
    assert args(configuration, "NodeAffinity").added_affinity == NodeAffinity(NodeSelector([term]))


@pytest.mark.parametrize(("presence", "operator"), [(True, "Exists"), (False, "DoesNotExist")])
def test_a_preferred_label_is_a_preferred_added_affinity(tmp_path, presence, operator):
    configuration = load(tmp_path, scoring(label_preference(presence=presence, weight=4)))
    term = PreferredSchedulingTerm(1, NodeSelectorTerm([requirement("a", operator)]))
    assert args(configuration, "NodeAffinity").added_affinity == NodeAffinity(None, [term])
    assert weights(configuration) == {"NodeAffinity": 4}


@pytest.mark.parametrize("other", [{"name": "NodeAffinityPriority"}, label_preference("b", "Other")])
def test_node_affinity_scores_for_one_priority_only(tmp_path, other):
    path = f"priorities[{1 if 'argument' in other else 0}].argument.labelPreference"
    lines = complaints(tmp_path, scoring(label_preference(), other))
    assert lines == [f"{path}: Forbidden: NodeAffinity scores for another priority already"]


def test_labels_that_services_spread_over_are_default_constraints(tmp_path):
    listed = [service_anti_affinity("zone", weight=2), service_anti_affinity("rack", "Second", weight=2)]
    configuration = load(tmp_path, scoring(*listed))
    found = args(configuration, "PodTopologySpread")
    assert found.defaulting_type is PodTopologySpreadDefaulting.LIST
    assert [(each.topology_key, each.max_skew, each.when_unsatisfiable) for each in found.default_constraints] == [
        ("zone", 1, "ScheduleAnyway"),
        ("rack", 1, "ScheduleAnyway"),
    ]
    assert weights(configuration) == {"PodTopologySpread": 4}


@pytest.mark.parametrize(
    ("listed", "detail"),
    [
        ([{"name": "SelectorSpreadPriority"}, service_anti_affinity()], "scores for a spread priority already"),
        (
            [service_anti_affinity("x", "Other", weight=2), service_anti_affinity()],
            "has another weight than the serviceAntiAffinity before",
        ),
        (
            [service_anti_affinity(weight=2**31 - 1), service_anti_affinity("rack", "Other", weight=2**31 - 1)],
            "PodTopologySpread's weight would be 4294967294, more than 2147483647",
        ),
    ],
)
def test_what_one_plugin_cannot_spread_by_is_an_error(tmp_path, listed, detail):
    (line,) = complaints(tmp_path, scoring(*listed))
    assert line.startswith("priorities[1].argument.serviceAntiAffinity: Forbidden: ")
    assert line.endswith(detail)


@pytest.mark.parametrize(
    ("listed", "weight", "defaulting"),
    [
        ({"SelectorSpreadPriority": 3}, 3, PodTopologySpreadDefaulting.SYSTEM),
        ({"ServiceSpreadingPriority": 3}, 3, PodTopologySpreadDefaulting.SYSTEM),
        ({"SelectorSpreadPriority": 3, "ServiceSpreadingPriority": 1}, 4, PodTopologySpreadDefaulting.SYSTEM),
        ({"EvenPodsSpreadPriority": 3}, 3, PodTopologySpreadDefaulting.LIST),
        ({"EvenPodsSpreadPriority": 3, "SelectorSpreadPriority": 3}, 3, PodTopologySpreadDefaulting.SYSTEM),
    ],
)
def test_spread_priorities_share_a_plugin(tmp_path, listed, weight, defaulting):
    content = scoring(*({"name": name, "weight": each} for name, each in listed.items()))
    configuration = load(tmp_path, content)
    assert weights(configuration) == {"PodTopologySpread": weight}
    assert args(configuration, "PodTopologySpread").defaulting_type is defaulting
    assert args(configuration, "PodTopologySpread").default_constraints == ()


def test_a_label_that_two_priorities_spread_over_counts_with_both_weights(tmp_path):
    listed = [
        service_anti_affinity("zone", weight=2),
        service_anti_affinity("zone", "Other", weight=1),
        service_anti_affinity("rack", "Third", weight=3),
    ]
    configuration = load(tmp_path, scoring(*listed))
    assert [each.topology_key for each in args(configuration, "PodTopologySpread").default_constraints] == [
        "zone",
        "rack",
    ]
    assert weights(configuration) == {"PodTopologySpread": 6}


def test_spread_priorities_whose_weights_add_up_to_too_much_are_an_error(tmp_path):
    listed = [{"name": name, "weight": 2**31 - 1} for name in ("SelectorSpreadPriority", "ServiceSpreadingPriority")]
    assert complaints(tmp_path, scoring(*listed)) == [
        "priorities[1].name: Forbidden: PodTopologySpread's weight would be 4294967294, more than 2147483647"
    ]


def test_another_weight_for_the_constraints_of_pods_is_told(tmp_path):
    notes = []
    listed = [{"name": "EvenPodsSpreadPriority", "weight": 2}, {"name": "SelectorSpreadPriority", "weight": 5}]
    configuration = load(tmp_path, scoring(*listed), notes=notes)
    assert weights(configuration) == {"PodTopologySpread": 5}
    assert "priorities[0].name: EvenPodsSpreadPriority: PodTopologySpread has one weight for all, 5" in map(str, notes)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            POLICY | {"predicates": [labels_presence("-")]},
            "predicates[0].argument.labelsPresence.labels[0]: Invalid value",
        ),
        (
            POLICY | {"predicates": [{"name": "Mine", "argument": {"serviceAffinity": {"labels": ["zone"]}}}]},
            "predicates[0].argument.serviceAffinity: Forbidden: has no successor",
        ),
        (
            POLICY | {"predicates": [labels_presence("a") | {"argument": {}}]},
            "predicates[0].argument: must hold one of labelsPresence, serviceAffinity",
        ),
        (scoring(service_anti_affinity("")), "priorities[0].argument.serviceAntiAffinity.label: Required value"),
        (scoring(label_preference("-")), "priorities[0].argument.labelPreference.label: Invalid value"),
    ],
)
def test_a_mistake_in_an_argument_is_an_error_at_its_field(tmp_path, content, expected):
    assert any(line.startswith(expected) for line in complaints(tmp_path, content))


def test_all_of_it_is_written_as_v1_and_reads_back(tmp_path):
    content = scoring(
        label_preference(weight=3),
        service_anti_affinity(name="Spread"),
        {"name": "LeastRequestedPriority", "weight": 2},
        {"name": "MostRequestedPriority"},
        {"name": "BalancedResourceAllocation"},
    ) | {"predicates": [labels_presence("a")]}
    configuration = load(tmp_path, content)
    assert load(tmp_path, to_minimal_yaml(configuration)) == configuration


def test_of_a_resource_listed_twice_the_last_weight_counts(tmp_path):
    resources = [{"name": "cpu", "weight": 5}, {"name": "memory", "weight": 3}, {"name": "cpu", "weight": 1}]
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    argument = {"requestedToCapacityRatioArguments": {"shape": shape, "resources": resources}}
    configuration = load(tmp_path, scoring({"name": "Mine", "argument": argument}))
    found = args(configuration, "NodeResourcesFit").scoring_strategy.resources
    assert {each.name: each.weight for each in found} == {"cpu": 1, "memory": 3}


@pytest.mark.parametrize("name", ["MostRequestedPriority", "EqualPriority", "Mine"])
def test_an_argument_says_what_any_name_stands_for(tmp_path, name):
    assert load(tmp_path, scoring(ratio(name=name))) == load(tmp_path, scoring(ratio()))


@pytest.mark.parametrize("argument", [{}, {"labelPreference": {"label": "a"}, "serviceAntiAffinity": {"label": "b"}}])
def test_an_argument_that_is_not_one_says_nothing_of_the_name(tmp_path, argument):
    assert len(complaints(tmp_path, scoring({"name": "Mine", "argument": argument}))) == 1
