"""What `bayplan config check` warns of, and that it warns of nothing else."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.config.configurations import POLICY, V1, affinity, extenders, fit, plugins
from tests.framework.test_missing_state import FILTERS, SCORES

from bayplan.config.document import parse_document
from bayplan.config.errors import quote
from bayplan.config.lint import configuration_warnings
from bayplan.plugins.registry import in_tree_extends

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
ADDED = "profiles[0].pluginConfig[0].args.addedAffinity"
RESOURCES = "profiles[0].pluginConfig[0].args.scoringStrategy.resources[0]"


def warned(document):
    return {each.path: each.message for each in configuration_warnings(document, in_tree_extends)}


def resources(*listed):
    return fit(scoringStrategy={"type": "MostAllocated", "resources": list(listed)})


@pytest.mark.parametrize(
    ("document", "path", "message"),
    [
        (POLICY, "apiVersion", "is deprecated"),
        (V1 | {"parallelism": 4}, "parallelism", "has no effect"),
        (V1 | {"clientConnection": {"contentType": "x"}}, "clientConnection.contentType", "has no effect"),
        (
            V1 | {"leaderElection": {"leaderElect": False, "retryPeriod": "2s"}},
            "leaderElection.retryPeriod",
            "leaderElect is false",
        ),
        (resources({"name": "gpu", "weight": 1}), f"{RESOURCES}.name", '"gpu" is no resource of Kubernetes'),
        (resources({"name": "cpu", "weight": 0}), f"{RESOURCES}.weight", "0 counts as 1"),
        (resources({"name": "cpu"}, {"name": "cpu"}), f"{RESOURCES[:-3]}[1].name", "twice"),
        (
            affinity(preferred=[{"weight": 0, "preference": {}}]),
            f"{ADDED}.preferredDuringSchedulingIgnoredDuringExecution[0]",
            "its weight is 0",
        ),
        (fit(ignoredResources=["gpu"]), "profiles[0].pluginConfig[0].args.ignoredResources[0]", "no domain"),
        (
            plugins(score={"enabled": [{"name": "ImageLocality", "weight": 0}]}),
            "profiles[0].plugins.score.enabled[0].weight",
            "0 counts as 1",
        ),
        (
            plugins(filter={"enabled": [{"name": "NodeName", "weight": 2}]}),
            "profiles[0].plugins.filter.enabled[0].weight",
            "only scores are weighted",
        ),
        (
            plugins(
                multiPoint={"enabled": [{"name": "ImageLocality"}]}, score={"enabled": [{"name": "ImageLocality"}]}
            ),
            "profiles[0].plugins.score.enabled[0]",
            "enabled twice",
        ),
        (
            plugins(bind={"disabled": [{"name": "ImageLocality"}]}),
            "profiles[0].plugins.bind.disabled[0]",
            "does not run there",
        ),
        (extenders({"weight": 5}), "extenders[0].weight", "without a prioritizeVerb"),
        (extenders({"urlPrefix": "not an address", "filterVerb": "f"}), "extenders[0].urlPrefix", "every call fails"),
        (extenders({"urlPrefix": "", "filterVerb": "f"}), "extenders[0]", "every call fails"),
        (
            plugins(preFilter={"disabled": [{"name": "NodePorts"}, {"name": "NodeAffinity"}]}),
            "profiles[0].plugins.preFilter",
            'preFilter of "NodePorts" is off: every pod that comes to their filter fails',
        ),
        (
            plugins(preScore={"disabled": [{"name": "*"}]}),
            "profiles[0].plugins.preScore",
            'preScore of "InterPodAffinity", "PodTopologySpread", "TaintToleration" is off',
        ),
        (
            plugins(multiPoint={"disabled": [{"name": "NodePorts"}]}, filter={"enabled": [{"name": "NodePorts"}]}),
            "profiles[0].plugins.filter",
            'preFilter of "NodePorts" is off',
        ),
    ],
)
def test_what_is_hardly_meant_is_warned_of_at_its_field(document, path, message):
    found = warned(document)
    assert list(found) == [path]
    assert message in found[path]


@pytest.mark.parametrize(
    ("before", "key", "failing"), [("preFilter", "filter", FILTERS), ("preScore", "score", SCORES)]
)
def test_what_fails_every_pod_without_its_preparation_is_warned_of_unless_it_is_off_as_well(before, key, failing):
    everything = {"disabled": [{"name": "*"}]}
    (told,) = warned(plugins(**{before: everything})).values()
    assert told.startswith(f"{before} of {', '.join(map(quote, sorted(failing)))} is off")
    assert warned(plugins(**{before: everything, key: everything})) == {}
    assert warned(plugins(multiPoint=everything)) == {}


def test_what_is_no_configuration_is_no_old_one():
    assert warned({"apiVersion": "v1", "kind": "Status"}) == {}


def test_arguments_of_a_plugin_that_does_not_run_are_warned_of():
    document = fit()
    document["profiles"][0]["plugins"] = {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}
    assert warned(document) == {
        "profiles[0].pluginConfig[0]": 'has no effect: "NodeResourcesFit" is disabled at multiPoint'
    }
    for key in ("preFilter", "filter"):
        document["profiles"][0]["plugins"][key] = {"enabled": [{"name": "NodeResourcesFit"}]}
    assert warned(document) == {}


def test_arguments_of_head_room_that_is_not_enabled_are_warned_of():
    document = fit()
    document["profiles"][0]["pluginConfig"] = [{"name": "NodeHeadroom", "args": {}}]
    assert warned(document) == {"profiles[0].pluginConfig[0]": 'has no effect: "NodeHeadroom" is not enabled'}


def test_head_room_without_resources_is_warned_of_where_it_is_enabled():
    document = plugins(score={"enabled": [{"name": "NodeHeadroom"}]})
    nothing = 'has no effect: pluginConfig gives "NodeHeadroom" no resources to keep'
    for args in ({}, {"resources": []}):
        assert warned(document) == {"profiles[0].plugins.score.enabled[0]": nothing}
        document["profiles"][0]["pluginConfig"] = [{"name": "NodeHeadroom", "args": args}]
    document["profiles"][0]["pluginConfig"][0]["args"] = {"resources": [{"name": "cpu", "percentage": 10}]}
    assert warned(document) == {}


def test_a_score_that_counts_no_resource_is_warned_of_where_it_is_enabled():
    document = plugins(score={"enabled": [{"name": "ScarceResourceAvoidance"}]})
    told = 'has no effect: pluginConfig gives "ScarceResourceAvoidance" no resources to avoid'
    assert warned(document) == {"profiles[0].plugins.score.enabled[0]": told}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_of_the_examples_only_old_formats_are_warned_of(example):
    document = parse_document(example.read_bytes(), [])
    assert set(warned(document)) <= {"apiVersion"}


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["profiles", "plugins", "score", "enabled", "pluginConfig", "args", "name", "weight", "resources"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["profiles", "extenders", "leaderElection", "clientConnection", "parallelism"]), ANY, max_size=4
    )
)
def test_whatever_a_file_holds_it_can_be_looked_at(document):
    assert all(each.path and each.message for each in configuration_warnings(V1 | document, in_tree_extends))
