"""The published JSON Schema accepts all that bayplan reads, and refuses what a single field shows to be wrong."""

import copy
import json
from functools import cache
from pathlib import Path

import pytest
import yaml
from tests.config.broken_args import AFFINITY, FIT_AND_OTHERS
from tests.config.broken_settings import SETTINGS
from tests.config.configurations import V1, affinity, election, extenders, fit, load, plugins, ratio, strategy

from bayplan.config.convert import to_effective
from bayplan.config.errors import ConfigurationError
from bayplan.config.load import default_configuration
from bayplan.config.schema import configuration_schema

ROOT = Path(__file__).parents[2]
RELATIONS = (
    # More than one field, or more than one element of a list.
    "Duplicate value",
    "duplicate extender managed resource name",
    "must be greater than `RenewDeadline`",
    "[1].schedulerName: Required value",
    "must have a positive weight applied to it",
    "only one queue sort plugin can be enabled",
    "must be the same for all profiles",
    "only one extender can implement bind",
    "values must be sorted in increasing order",
    "may not be given together with scoringStrategy",
    "when .defaultConstraints are not empty",
    "values set can't be empty",
    "values set must be empty",
    "exactly one value is required",
    "the value must be an integer",
    "must have one element",
    # Plugins of other distributions have any name.
    '"Foo": does not exist',
    # Lengths in bytes, label keys, and what is said of a field in one place only.
    "must be no more than 63 bytes",
    'matchExpressions[0].key: Invalid value: "-"',
    'matchFields[0].operator: Unsupported value: "Gt"',
    "resources[0].weight: Invalid value: 2: must be 1",
    "must be at least 1 second",
    "must not define a selector",
)
"""Errors that only `config check` finds."""


def files():
    """Each file of the repository that is a configuration of today."""
    folders = (ROOT / "examples", ROOT / "manifests", ROOT / "tests" / "config" / "data")
    for path in sorted(each for folder in folders for each in folder.rglob("*.yaml")):
        if f"\nkind: {V1['kind']}" in path.read_text() and V1["apiVersion"] + "\n" in path.read_text():
            yield pytest.param(path, id=str(path.relative_to(ROOT)))


@cache
def validator():
    """Made for the first test that asks: jsonschema reads 38 grammars when it is loaded, a fifth of a collection."""
    from jsonschema import Draft202012Validator

    return Draft202012Validator(configuration_schema())


def problems(content):
    return [f"{each.json_path}: {each.message}" for each in validator().iter_errors(content)]


def test_the_schema_is_one_and_is_published_as_it_is():
    validator().check_schema(configuration_schema())
    assert json.loads((ROOT / "docs" / "configuration.schema.json").read_text()) == configuration_schema()


@pytest.mark.parametrize("path", list(files()))
def test_every_configuration_of_the_repository_is_valid(path):
    assert problems(yaml.safe_load(path.read_text())) == []


@pytest.mark.parametrize(
    "content",
    [
        V1,
        to_effective(default_configuration()),
        election(leaderElect=False, leaseDuration="-1s", resourceLock="endpoints"),
        V1 | {"clientConnection": {"qps": -1}},
        V1 | {"profiles": None, "parallelism": 16.0},
        ratio((0, 10), (100, 0)),
        affinity([{"key": "a.b/c", "operator": "Gt", "values": ["5"]}]),
        plugins(score={"disabled": [{"name": "*"}]}, placementScore={"enabled": []}),
        plugins(score={"enabled": [{"name": "FromElsewhere", "weight": 2}]}),
        fit(**{"bayplan.io": {"scoringStrategies": [{"type": "MostAllocated", "weight": 3}]}}),
        extenders({"filterVerb": "filter", "httpTimeout": "1m30s", "tlsConfig": {"caData": "AAAA"}}),
    ],
)
def test_what_bayplan_reads_is_valid(content):
    assert problems(content) == []


@pytest.mark.parametrize(
    ("content", "error"),
    [*SETTINGS, *FIT_AND_OTHERS, *AFFINITY],
    ids=lambda value: value[:60] if isinstance(value, str) else "",
)
def test_what_bayplan_refuses_is_invalid_unless_it_takes_more_than_a_field_to_see(content, error):
    assert bool(problems(content)) is not any(text in error for text in RELATIONS)


@pytest.mark.parametrize("missing", ["apiVersion", "kind"])
def test_a_configuration_says_what_it_is(missing):
    assert problems({key: value for key, value in V1.items() if key != missing})
    assert problems(V1 | {missing: "v1"})


ODD = (None, True, 0, -1, 1.0, 1.5, 101, 2**31, 2**63, "", "x", "-1s", "-0s", "5m", [], [None], {}, {"x": 1})


def with_odd_values(content):
    """`content` again and again, each time with one of its values replaced by an odd one."""
    places = []

    def visit(value, path):
        if path:
            places.append(path)
        children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, each in children:
            visit(each, (*path, key))

    visit(content, ())
    for *parents, last in places:
        for odd in ODD:
            changed = copy.deepcopy(content)
            holder = changed
            for key in parents:
                holder = holder[key]
            holder[last] = odd
            yield changed


def everything():
    """A configuration that has each field of plugins' arguments and extenders at least once."""
    content = to_effective(default_configuration())
    (profile,) = content["profiles"]
    # Each plugin set is read alike.
    profile["plugins"] = {"score": {"enabled": [{"name": "NodeName"}], "disabled": [{"name": "*", "weight": 1}]}}
    tls = {"insecure": True, "serverName": "a", "certFile": "b", "keyFile": "c", "caData": ""}
    managed = {"managedResources": [{"name": "a/b", "ignoredByScheduler": True}]}
    content |= extenders({"prioritizeVerb": "p", "weight": 1, "httpTimeout": "1s", "tlsConfig": tls, **managed})
    added = affinity([{"key": "a", "operator": "In", "values": ["b"]}], [{"weight": 1, "preference": {}}])
    own = ratio((0, 0), (100, 10))["profiles"][0]["pluginConfig"]
    return [content, added, V1 | {"profiles": [{"pluginConfig": own}]}, strategy(type="MostAllocated", resources=[])]


@pytest.mark.parametrize("content", everything())
def test_the_schema_refuses_nothing_that_bayplan_reads(tmp_path, content):
    read = 0
    for changed in with_odd_values(content):
        try:
            load(tmp_path, changed)
        except ConfigurationError:
            continue
        read += 1
        assert problems(changed) == []
    assert read


def described(schema):
    """The names of the fields below `schema` that are without a description."""
    for name, each in schema.get("properties", {}).items():
        if "description" not in each:
            yield name
        yield from described(each)


def test_fields_of_the_top_level_are_described_and_have_their_defaults():
    schema = configuration_schema()
    assert set(described(schema)) == {"apiVersion", "kind"}
    assert schema["properties"]["parallelism"]["default"] == 16
    assert schema["$defs"]["LeaderElection"]["properties"]["leaseDuration"]["default"] == "15s"
    assert "`certFile`" in schema["$defs"]["ExtenderTLSConfig"]["properties"]["certData"]["description"]
