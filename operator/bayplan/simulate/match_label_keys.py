"""What `matchLabelKeys` and `mismatchLabelKeys` name, written into selectors as the API server does for new pods."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import structs

from bayplan.api.meta_objects import LabelSelector, LabelSelectorRequirement
from bayplan.api.objects import Affinity, PodAffinity, PodAffinityTerm, PodSpec, TopologySpreadConstraint


def merged_selectors(spec: PodSpec, labels: Mapping[str, str]) -> dict[str, object]:
    """The fields that change as the labels of a new pod are written into its selectors.

    Upstream: pkg/registry/core/pod/strategy.go applyMatchLabelKeysAndMismatchLabelKeys.
    """
    changes: dict[str, object] = {}
    if spec.affinity is not None:
        changes["affinity"] = _merged_affinity(spec.affinity, labels)
    if spec.topology_spread_constraints:
        changes["topology_spread_constraints"] = _merged_constraints(spec.topology_spread_constraints, labels)
    return changes


def _merged_affinity(affinity: Affinity, labels: Mapping[str, str]) -> Affinity:
    """The affinity with the label keys of its terms in their selectors; schedulers look nowhere else for them."""
    return structs.replace(
        affinity,
        pod_affinity=affinity.pod_affinity and _merged(affinity.pod_affinity, labels),
        pod_anti_affinity=affinity.pod_anti_affinity and _merged(affinity.pod_anti_affinity, labels),
    )


def _merged_constraints(
    constraints: Sequence[TopologySpreadConstraint], labels: Mapping[str, str]
) -> list[TopologySpreadConstraint]:
    """The constraints with their matchLabelKeys in their selectors (upstream: the same file)."""
    return [
        structs.replace(each, label_selector=_selector(each.label_selector, each.match_label_keys or (), (), labels))
        for each in constraints
    ]


def _merged(block: PodAffinity, labels: Mapping[str, str]) -> PodAffinity:
    required = block.required_during_scheduling_ignored_during_execution
    preferred = block.preferred_during_scheduling_ignored_during_execution
    return PodAffinity(
        required_during_scheduling_ignored_during_execution=required and [_term(term, labels) for term in required],
        preferred_during_scheduling_ignored_during_execution=preferred
        and [structs.replace(each, pod_affinity_term=_term(each.pod_affinity_term, labels)) for each in preferred],
    )


def _term(term: PodAffinityTerm, labels: Mapping[str, str]) -> PodAffinityTerm:
    selector = _selector(term.label_selector, term.match_label_keys or (), term.mismatch_label_keys or (), labels)
    return structs.replace(term, label_selector=selector)


def _selector(
    selector: LabelSelector | None, match: Iterable[str], mismatch: Iterable[str], labels: Mapping[str, str]
) -> LabelSelector | None:
    """The selector and one expression per key that the pod has; a selector that matches nothing stays that."""
    if selector is None:
        return None
    held = selector.match_expressions or []
    wanted = (
        LabelSelectorRequirement(key=key, operator=operator, values=[labels[key]])
        for operator, keys in (("In", match), ("NotIn", mismatch))
        for key in keys
        if key in labels
    )
    added = [each for each in wanted if each not in held]
    return structs.replace(selector, match_expressions=[*held, *added]) if added else selector
