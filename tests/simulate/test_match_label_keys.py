from tests.builders import make_pod

from bayplan.api.meta_objects import LabelSelector, LabelSelectorRequirement
from bayplan.api.objects import Pod, PodAffinity, PodAffinityTerm, TopologySpreadConstraint, WeightedPodAffinityTerm
from bayplan.simulate.admission import Admission

APP = LabelSelector(match_labels={"app": "a"})


def admitted(pod: Pod) -> Pod:
    return Admission(()).pod(pod)


def term(**fields: object) -> PodAffinityTerm:
    return PodAffinityTerm(topology_key="zone", **{"label_selector": APP, **fields})


def required(pod: Pod) -> PodAffinityTerm:
    block = pod.spec.affinity.pod_affinity
    return block.required_during_scheduling_ignored_during_execution[0]


def expressions(selector: LabelSelector) -> list[tuple[str, str, list[str] | None]]:
    return [(each.key, each.operator, each.values) for each in selector.match_expressions or ()]


def with_terms(*terms: PodAffinityTerm, labels: dict[str, str]) -> Pod:
    block = PodAffinity(required_during_scheduling_ignored_during_execution=list(terms))
    return make_pod(pod_affinity=block, labels=labels)


def test_label_keys_of_affinity_terms_are_written_into_their_selectors():
    wanted = term(match_label_keys=["version"], mismatch_label_keys=["tenant"])
    pod = admitted(with_terms(wanted, labels={"version": "1", "tenant": "t"}))
    assert expressions(required(pod).label_selector) == [("version", "In", ["1"]), ("tenant", "NotIn", ["t"])]
    assert required(pod).label_selector.match_labels == {"app": "a"}


def test_preferred_anti_affinity_is_merged_as_well():
    wish = WeightedPodAffinityTerm(weight=1, pod_affinity_term=term(match_label_keys=["version"]))
    block = PodAffinity(preferred_during_scheduling_ignored_during_execution=[wish])
    pod = admitted(make_pod(pod_anti_affinity=block, labels={"version": "1"}))
    found = pod.spec.affinity.pod_anti_affinity.preferred_during_scheduling_ignored_during_execution[0]
    assert found.weight == 1
    assert expressions(found.pod_affinity_term.label_selector) == [("version", "In", ["1"])]


def test_keys_the_pod_has_no_label_for_and_terms_without_a_selector_add_nothing():
    pod = admitted(with_terms(term(match_label_keys=["version"]), labels={"app": "a"}))
    assert required(pod).label_selector == APP
    pod = admitted(with_terms(term(match_label_keys=["app"], label_selector=None), labels={"app": "a"}))
    assert required(pod).label_selector is None


def test_a_pod_from_a_live_cluster_keeps_its_selectors():
    merged = LabelSelector(match_expressions=[LabelSelectorRequirement(key="app", operator="In", values=["a"])])
    pod = with_terms(term(match_label_keys=["app"], label_selector=merged), labels={"app": "a"})
    assert admitted(pod).spec.affinity == pod.spec.affinity


def test_label_keys_of_spread_constraints_are_written_into_their_selectors():
    def constraint(key: str, label_keys: list[str] | None) -> TopologySpreadConstraint:
        return TopologySpreadConstraint(
            max_skew=1, topology_key=key, label_selector=APP, match_label_keys=label_keys, when_unsatisfiable=""
        )

    spread = [constraint("zone", ["version"]), constraint("host", None)]
    pod = admitted(make_pod(spread=spread, labels={"version": "1"}))
    first, second = pod.spec.topology_spread_constraints
    assert expressions(first.label_selector) == [("version", "In", ["1"])]
    assert second.label_selector == APP
