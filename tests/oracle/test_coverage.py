"""The stored cases show every plugin at work."""

from collections import Counter

import pytest
from tests.oracle.case import DATA, recorded_cases
from tests.oracle.families.family import FAMILIES, PREEMPTION_FAMILIES

from bayplan.plugins.registry import IN_TREE, in_tree_extends

_RECORDED = list(recorded_cases(DATA, FAMILIES))
_DECISIONS = [decision for recorded in _RECORDED for decision in recorded.case.decisions]

# What kube-scheduler says of nodes that the plugin alone rejects.
_REASONS = {
    "NodeUnschedulable": "node(s) were unschedulable",
    "TaintToleration": "node(s) had untolerated taint(s)",
    "NodeAffinity": "node(s) didn't match Pod's node affinity/selector",
    "NodePorts": "node(s) didn't have free ports for the requested pod ports",
    "NodeResourcesFit": "Insufficient cpu",
    "VolumeRestrictions": "PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
    "NodeVolumeLimits": "node(s) exceed max volume count",
    "VolumeBinding": "node(s) didn't find available persistent volumes to bind",
    "VolumeZone": "node(s) had no available volume zone",
    "PodTopologySpread": "node(s) didn't match pod topology spread constraints",
    "InterPodAffinity": "node(s) didn't match pod anti-affinity rules",
    "NodeDeclaredFeatures": "node(s) didn't match Pod's required features",
}
# A pod that names its node is given to no scheduler, and DynamicResources lets pods without claims through.
_NEVER_REJECTS = {"NodeName", "DynamicResources"}
# Scoring by capacity is behind a feature gate that is off.
_NEVER_SCORES = {"VolumeBinding", "DynamicResources"}

_FURTHER_TEXTS = (
    "Too many pods",
    "Insufficient memory",
    "Insufficient ephemeral-storage",
    "Insufficient example.com/gpu",
    "Insufficient hugepages-2Mi",
    "node(s) didn't satisfy plugin(s) [NodeAffinity]",
    "node(s) didn't match pod topology spread constraints (missing required label)",
    "node(s) didn't match pod affinity rules",
    "node(s) didn't satisfy existing pods anti-affinity rules",
    "node(s) had no available disk",
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) did not have enough free storage",
    "pod has unbound immediate PersistentVolumeClaims",
    'persistentvolumeclaim "',
    "waiting for ephemeral volume controller to create the persistentvolumeclaim",
    "(pod is not owner)",
)

_PREEMPTOR_FIELDS = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "volumes")
_PREEMPTION_TEXTS = (
    "No preemption victims found for incoming pod",
    "Preemption is not helpful for scheduling",
    "not eligible due to preemptionPolicy=Never.",
    "not eligible due to a terminating pod on the nominated node.",
)


def _of_point(point: str) -> set[str]:
    return {name for name in IN_TREE if in_tree_extends(name, point)}


def _cases_with(text: str) -> int:
    return sum(text in (decision.message or "") for decision in _DECISIONS)


def test_there_are_many_cases_of_every_family_under_many_configurations():
    families = Counter(recorded.family for recorded in _RECORDED)
    assert families == {name: family.cases for name, family in FAMILIES.items()}
    assert families.total() >= 600
    assert len({recorded.case.configuration for recorded in _RECORDED}) >= 12


def test_a_name_stands_for_one_case():
    assert len({recorded.case.name for recorded in _RECORDED}) == len(_RECORDED)


def test_the_reasons_are_those_of_every_plugin_that_filters():
    assert _of_point("filter") == {*_REASONS, *_NEVER_REJECTS}


@pytest.mark.parametrize("plugin", _REASONS)
def test_every_filter_rejects_nodes_somewhere(plugin):
    assert _cases_with(_REASONS[plugin]) >= 5


@pytest.mark.parametrize("text", _FURTHER_TEXTS)
def test_every_text_of_a_message_comes_up_somewhere(text):
    assert _cases_with(text)


@pytest.mark.parametrize("plugin", sorted(_of_point("score") - _NEVER_SCORES))
def test_every_score_tells_nodes_apart_somewhere(plugin):
    assert sum(len(set(decision.scores.get(plugin, ()))) > 1 for decision in _DECISIONS) >= 20


@pytest.mark.parametrize(
    "configuration", sorted({name for family in FAMILIES.values() for name in family.configurations})
)
def test_every_configuration_decides_between_nodes(configuration):
    decisions = [
        decision
        for recorded in _RECORDED
        if recorded.case.configuration == configuration
        for decision in recorded.case.decisions
    ]
    assert any(len(set(decision.totals)) > 1 for decision in decisions)


def test_enough_is_recorded_of_everything_that_preemption_looks_at():
    decided = [
        (recorded.case, pod, decision)
        for recorded in recorded_cases(DATA, PREEMPTION_FAMILIES)
        for pod, decision in zip(recorded.case.scene.incoming, recorded.case.decisions, strict=True)
    ]
    preempted = [(case, pod, decision) for case, pod, decision in decided if decision.nominated]
    messages = " ".join(decision.message or "" for _, _, decision in decided)
    assert len({case.name for case, _, _ in preempted}) >= 200
    assert {case.configuration for case, _, _ in preempted} == {"all-nodes", "defaults", "few-nodes", "a-third"}
    assert sum(len(decision.candidates) for _, _, decision in decided) >= 1000
    assert sum(bool(decision.checked) for _, _, decision in decided) >= 50
    assert max(len(decision.candidates[decision.nominated]) for _, _, decision in preempted) >= 5
    assert all(any(field in pod["spec"] for _, pod, _ in preempted) for field in _PREEMPTOR_FIELDS)
    assert all(text in messages for text in _PREEMPTION_TEXTS)
