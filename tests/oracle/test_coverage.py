"""The stored cases are kube-scheduler's of the version that is built, and show every plugin at work."""

from collections import Counter

import pytest
from e2e.controlplane.kubernetes_version import kubernetes_version
from tests.oracle.case import RECORDINGS, Decision, Recorded, read_cases, recorded_cases
from tests.oracle.families.family import ALL_FAMILIES, FAMILIES, PREEMPTION_FAMILIES
from tests.oracle.families.preemption import GATE, NOMINATED
from tests.oracle.profiles import GPU
from tests.oracle.switched_off import SWITCHED_OFF, configuration_without, profile_without

from bayplan.config.plugin_sets import OWN_PLUGINS
from bayplan.plugins.registry import IN_TREE, in_tree_extends

_ALL = list(recorded_cases(RECORDINGS, ALL_FAMILIES))
_RECORDED = [recorded for recorded in _ALL if recorded.family in FAMILIES]
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
# A pod that names its node is given to no scheduler, and pods with claims of devices have a family of their own.
_NEVER_REJECTS = {"NodeName", "DynamicResources"}
_NEVER_SCORES = {"DynamicResources"}

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
    "found a potential placement for pod on node ",
    # A PreFilter that rejects leaves DynamicResources' PostFilter without the state it reads.
    "not found. not found",
)

_PREEMPTOR_FIELDS = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "volumes")
_PREEMPTION_TEXTS = (
    "No preemption victims found for incoming pod",
    "Preemption is not helpful for scheduling",
    "not eligible due to preemptionPolicy=Never.",
    "not eligible due to a terminating pod on the nominated node.",
)

_RESULT_FIELDS = ("adminAccess", "tolerations", "shared", "consumedCapacity")
_DEVICE_TEXTS = (
    "cannot allocate all claims",
    "invalid resource pools were encountered",
    "device class gone does not exist",
    "resourceclaim not available on the node",
    "deallocation of ResourceClaim completed",
    "CEL runtime error: no such key",
    "because a claim constraint would not be satisfied",
    "is currently being updated",
    "is currently invalid",
)


def _of_point(point: str) -> set[str]:
    return {name for name in IN_TREE if name not in OWN_PLUGINS and in_tree_extends(name, point)}


def _cases_with(text: str) -> int:
    return sum(text in (decision.message or "") for decision in _DECISIONS)


def _cases(family: str) -> list[Recorded]:
    return [recorded for recorded in _ALL if recorded.family == family]


def _decisions(*families: str) -> list[Decision]:
    return [decision for family in families for recorded in _cases(family) for decision in recorded.case.decisions]


@pytest.mark.parametrize("family", ALL_FAMILIES)
def test_the_cases_are_decisions_of_the_kubernetes_that_is_built(family):
    assert read_cases(RECORDINGS / f"{family}.jsonl.gz").kubernetes == kubernetes_version()


def test_there_are_many_cases_of_every_family_under_many_configurations():
    families = Counter(recorded.family for recorded in _ALL)
    assert families == {name: family.cases for name, family in ALL_FAMILIES.items()}
    assert families.total() >= 1500
    assert len({recorded.case.configuration for recorded in _RECORDED}) >= 12


def test_a_name_stands_for_one_case():
    assert len({recorded.case.name for recorded in _ALL}) == len(_ALL)


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
    # How full storage would be matters only where drivers tell how much room they have.
    enough = 3 if plugin == "VolumeBinding" else 20
    assert sum(len(set(decision.scores.get(plugin, ()))) > 1 for decision in _DECISIONS) >= enough


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


def test_pods_are_preempted_in_every_family_where_they_may_be():
    preempted = {recorded.family for recorded in _RECORDED for each in recorded.case.decisions if each.nominated}
    assert preempted == set(FAMILIES)


def test_enough_is_recorded_of_everything_that_preemption_looks_at():
    decided = [
        (recorded.case, pod, decision)
        for family in PREEMPTION_FAMILIES
        for recorded in _cases(family)
        for pod, decision in zip(recorded.case.scene.incoming, recorded.case.decisions, strict=True)
    ]
    preempted = [(case, pod, decision) for case, pod, decision in decided if decision.nominated]
    messages = " ".join(decision.message or "" for _, _, decision in decided)
    assert len({case.name for case, _, _ in preempted}) >= 200
    used = {name for family in PREEMPTION_FAMILIES.values() for name in family.configurations}
    assert {case.configuration for case, _, _ in preempted} == used
    assert sum(len(decision.candidates) for _, _, decision in decided) >= 1000
    assert sum(bool(decision.checked) for _, _, decision in decided) >= 50
    assert max(len(decision.candidates[decision.nominated]) for _, _, decision in preempted) >= 5
    assert all(any(field in pod["spec"] for _, pod, _ in preempted) for field in _PREEMPTOR_FIELDS)
    assert all(text in messages for text in _PREEMPTION_TEXTS)


def test_victims_that_have_not_started_are_among_equal_ones():
    found = 0
    for recorded in _cases("not-started"):
        started = {
            f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            for pod in recorded.case.scene.placed
            if "startTime" in pod.get("status", {})
        }
        decisions = recorded.case.decisions
        found += any(each.nominated and set(each.candidates[each.nominated]) - started for each in decisions)
    assert found >= 15


def test_searches_stop_before_the_last_node_and_go_on_from_there():
    sampled = [recorded for recorded in _cases("sampling") for each in recorded.case.decisions if each.node]
    assert all(len(recorded.case.scene.nodes) > 100 for recorded in sampled)
    short = [
        each
        for recorded in _cases("sampling")
        for each in recorded.case.decisions
        if 100 <= len(each.feasible) < len(recorded.case.scene.nodes)
    ]
    assert len(short) >= 50
    first_fit = [each for recorded in _cases("first-fit") for each in recorded.case.decisions if each.node]
    assert sum(len(each.feasible) == 1 for each in first_fit) >= 60


def test_pods_are_placed_by_the_ranking_of_the_pod_before_them():
    assert sum(decision.hinted for decision in _decisions("repeats")) >= 30


@pytest.mark.parametrize("point", SWITCHED_OFF)
def test_every_plugin_is_switched_off_at_every_extension_point_it_has(point):
    used = {
        pod["spec"]["schedulerName"]
        for recorded in _cases(configuration_without(point))
        for pod in recorded.case.scene.incoming
    }
    assert used == {profile_without(plugin) for plugin in SWITCHED_OFF[point]}


def test_filters_and_scores_fail_without_the_state_of_their_own_first_step():
    messages = [each.message or "" for each in _decisions("without-prefilter", "without-prescore") if each.error]
    for plugin in ("NodePorts", "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity"):
        assert any(plugin in message for message in messages)
    assert any("running Score plugins" in message for message in messages)


def test_extenders_reject_nodes_score_them_take_candidates_and_fail():
    decisions = _decisions("extenders")
    messages = " ".join(decision.message or "" for decision in decisions)
    assert " no licence here" in messages
    assert " never a licence here" in messages
    assert any(decision.error and "extender" in (decision.message or "") for decision in decisions)
    assert sum(bool(decision.nominated) for decision in decisions) >= 5
    assert sum(len(set(decision.totals)) > 1 for decision in decisions) >= 60


def test_nodes_and_pods_change_between_decisions():
    for family, kind in (("image-updates", "Node"), ("resizes", "Pod")):
        updates = [each for recorded in _cases(family) for each in recorded.case.scene.updates]
        assert {each["kind"] for each in updates} == {kind}
        assert len(updates) >= 100
    assert any("spec" in each for recorded in _cases("resizes") for each in recorded.case.scene.updates)


def test_objects_of_all_kinds_come_change_and_go_between_decisions():
    found = Counter(
        (each["kind"], next(how for how in ("created", "deleted", "patch") if how in each))
        for recorded in _cases("changes")
        for each in recorded.case.scene.updates
    )
    assert {kind for kind, _ in found} >= {"Node", "Pod", "Namespace", "CSINode"}
    often = [("Node", "created"), ("Node", "deleted"), ("Node", "patch"), ("Pod", "deleted"), ("Pod", "patch")]
    assert all(found[each] >= 10 for each in often)


def test_devices_are_allocated_refused_and_given_back():
    decisions = _decisions("devices")
    claims = [claim for decision in decisions for claim in decision.claims.values()]
    results = [result for claim in claims for result in claim["results"]]
    texts = " ".join(decision.message or "" for decision in decisions)
    assert len(claims) >= 500
    assert all(any(field in each for each in results) for field in _RESULT_FIELDS)
    assert any("/" in each["request"] for each in results)
    assert {each["source"] for claim in claims for each in claim.get("config", ())} == {"FromClass", "FromClaim"}
    assert any("nodeSelector" not in claim for claim in claims)
    assert any(len(set(decision.scores.get("DynamicResources", ()))) > 1 for decision in decisions)
    assert all(text in texts for text in _DEVICE_TEXTS)


def test_extended_resources_are_provided_by_devices_and_by_device_plugins():
    decided = [
        (decision, any("-extended-resources-" in name for name in decision.claims))
        for recorded in _cases("devices")
        for pod, decision in zip(recorded.case.scene.incoming, recorded.case.decisions, strict=True)
        if any(GPU in each.get("resources", {}).get("limits", ()) for each in pod["spec"]["containers"])
    ]
    assert sum(by_devices for _, by_devices in decided) >= 50
    assert sum(decision.node is not None and not by_devices for decision, by_devices in decided) >= 5
    assert sum(len(set(decision.scores.get("NodeResourcesFit", ()))) > 1 for decision, _ in decided) >= 30


def test_room_is_kept_for_nominated_pods_and_nominations_end():
    scenes = [recorded.case.scene for recorded in _cases("nominations")]
    assert sum(bool(scene.foreign) for scene in scenes) >= 30
    assert any(pod["spec"].get("schedulingGates") == GATE for scene in scenes for pod in scene.incoming)
    assert any(
        NOMINATED in pod.get("status", {}) and decision.nomination_ended
        for recorded in _cases("nominations")
        for pod, decision in zip(recorded.case.scene.incoming, recorded.case.decisions, strict=True)
    )


def test_nominated_nodes_are_looked_at_whether_or_not_the_pod_names_them():
    messages = " ".join(decision.message or "" for decision in _decisions("nominations"))
    assert "didn't satisfy plugin(s) [NodeAffinity NodeResourcesFit]" in messages
    assert "1 node(s) didn't match Pod's node affinity/selector, 4 node(s) didn't satisfy plugin(s)" in messages
