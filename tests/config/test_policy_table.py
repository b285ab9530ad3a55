"""The tables of docs/configuration.md name all that a Policy of Kubernetes 1.16 may name, and every row is so."""

import re
from dataclasses import dataclass

import pytest
from tests.config.configurations import POLICY, load, write
from tests.config.test_documentation import TEXT

from bayplan.config.errors import ConfigurationError
from bayplan.config.load import load_configuration
from bayplan.config.plugin_sets import expand_profiles
from bayplan.config.policy_table import PREDICATE_ARGUMENTS, PREDICATES, PRIORITIES, PRIORITY_ARGUMENTS
from bayplan.plugins.registry import in_tree_extends

# What release 1.16 registers, with every feature gate in either position, and names it has constants for.
PREDICATES_OF_1_16 = [
    "CheckNodeCondition",
    "CheckNodeDiskPressure",
    "CheckNodeLabelPresence",
    "CheckNodeMemoryPressure",
    "CheckNodePIDPressure",
    "CheckNodeUnschedulable",
    "CheckServiceAffinity",
    "CheckVolumeBinding",
    "EvenPodsSpread",
    "GeneralPredicates",
    "HostName",
    "MatchInterPodAffinity",
    "MatchNodeSelector",
    "MaxAzureDiskVolumeCount",
    "MaxCSIVolumeCountPred",
    "MaxCinderVolumeCount",
    "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount",
    "NoDiskConflict",
    "NoVolumeZoneConflict",
    "PodFitsHostPorts",
    "PodFitsPorts",
    "PodFitsResources",
    "PodToleratesNodeNoExecuteTaints",
    "PodToleratesNodeTaints",
]
PRIORITIES_OF_1_16 = [
    "BalancedResourceAllocation",
    "EqualPriority",
    "EvenPodsSpreadPriority",
    "ImageLocalityPriority",
    "InterPodAffinityPriority",
    "LeastRequestedPriority",
    "MostRequestedPriority",
    "NodeAffinityPriority",
    "NodePreferAvoidPodsPriority",
    "RequestedToCapacityRatioPriority",
    "ResourceLimitsPriority",
    "SelectorSpreadPriority",
    "ServiceSpreadingPriority",
    "TaintTolerationPriority",
]
ARGUMENTS_OF_1_16 = {
    "serviceAffinity": {"labels": ["zone"]},
    "labelsPresence": {"labels": ["ssd"], "presence": True},
    "serviceAntiAffinity": {"label": "zone"},
    "labelPreference": {"label": "ssd", "presence": True},
    "requestedToCapacityRatioArguments": {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]},
}
MANDATORY = {"NodeUnschedulable", "TaintToleration"}


@dataclass(frozen=True)
class Row:
    name: str
    plugins: frozenset[str]
    different: str


def rows(heading):
    """The rows of the table below a heading."""
    section = TEXT.split(f"### {heading}\n")[1].split("\n###")[0]
    found = []
    for line in re.findall(r"^\| (.*) \|$", section, re.MULTILINE)[1:]:
        name, plugins, different = (cell.strip().strip("`") for cell in line.split("|"))
        found.append(Row(name, frozenset(plugins.split(", ")) - {"none"}, different))
    return found


def named(rows):
    return [pytest.param(row, id=row.name) for row in rows]


@pytest.mark.parametrize(
    ("heading", "names", "table"),
    [
        ("Predicates", PREDICATES_OF_1_16, PREDICATES),
        ("Priorities", PRIORITIES_OF_1_16, PRIORITIES),
        ("Arguments", ARGUMENTS_OF_1_16, PREDICATE_ARGUMENTS | PRIORITY_ARGUMENTS),
    ],
)
def test_the_table_has_a_row_for_everything_of_1_16(heading, names, table):
    assert sorted(row.name for row in rows(heading)) == sorted(names)
    assert sorted(table) == sorted(names)


@pytest.mark.parametrize("row", named(rows("Predicates")))
def test_a_predicate_is_what_its_row_says(tmp_path, row):
    content = POLICY | {"predicates": [{"name": row.name}], "priorities": []}
    assert outcome(tmp_path, content, "filter", "predicates[0].name", row.name) == (
        row.plugins | MANDATORY,
        row.different,
    )


@pytest.mark.parametrize("row", named(rows("Priorities")))
def test_a_priority_is_what_its_row_says(tmp_path, row):
    content = POLICY | {"predicates": [], "priorities": [{"name": row.name, "weight": 3}]}
    assert outcome(tmp_path, content, "score", "priorities[0].name", row.name) == (row.plugins, row.different)


@pytest.mark.parametrize("row", named(rows("Arguments")))
def test_an_argument_is_what_its_row_says(tmp_path, row):
    kind, point = ("predicates", "filter") if row.name in PREDICATE_ARGUMENTS else ("priorities", "score")
    entry = {"name": "Mine", "argument": {row.name: ARGUMENTS_OF_1_16[row.name]}}
    content = (
        POLICY | {"predicates": [], "priorities": []} | {kind: [entry | ({"weight": 3} if point == "score" else {})]}
    )
    plugins, different = outcome(tmp_path, content, point, f"{kind}[0].argument.{row.name}", "")
    assert (plugins - (MANDATORY if point == "filter" else set()), different) == (row.plugins, row.different)


def outcome(directory, content, point, path, name):
    """The plugins that run at a point, and what is told of the field, as a row has it."""
    notes = []
    try:
        configuration = load_configuration(write(directory, content), notes=notes)
    except ConfigurationError as error:
        (complaint,) = error.errors
        assert complaint.path == path
        said = complaint.message.removeprefix(f'Invalid value: "{name}": ' if name else "Forbidden: ")
        nothing = load(directory, POLICY | {"predicates": [], "priorities": []})
        return plugins_at(point, nothing), f"Refused: {said}"
    assert {note.path for note in notes} <= {path}
    return plugins_at(point, configuration), "".join(note.message.removeprefix(f"{name}: ") for note in notes)


def plugins_at(point, configuration):
    (profile,) = expand_profiles(configuration, in_tree_extends).values()
    return {entry.name for entry in profile[point]}
