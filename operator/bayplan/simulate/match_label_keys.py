"""matchLabelKeys and mismatchLabelKeys, which the API server writes into selectors when a pod is created."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import structs

from bayplan.api.meta_objects import LabelSelector, LabelSelectorRequirement
from bayplan.api.objects import Affinity, PodAffinity, PodAffinityTerm, TopologySpreadConstraint


def merged_affinity(affinity: Affinity, labels: Mapping[str, str]) -> Affinity:
    """The affinity with the label keys of its terms in their selectors; schedulers look nowhere else for them.

    Upstream: pkg/registry/core/pod/strategy.go applyMatchLabelKeysAndMismatchLabelKeys.
    """
    changes = {
        name: _merged(block, labels)
        for name, block in (("pod_affinity", affinity.pod_affinity), ("pod_anti_affinity", affinity.pod_anti_affinity))
        if block is not None and any(map(_has_keys, _terms(block)))
    }
    return structs.replace(affinity, **changes) if changes else affinity


def merged_constraints(
    constraints: Sequence[TopologySpreadConstraint], labels: Mapping[str, str]
) -> list[TopologySpreadConstraint]:
    """The constraints with their matchLabelKeys in their selectors (upstream: the same file)."""
    return [
        structs.replace(each, label_selector=_selector(each.label_selector, each.match_label_keys, (), labels))
        if each.match_label_keys
        else each
        for each in constraints
    ]


def _terms(block: PodAffinity) -> Iterable[PodAffinityTerm]:
    yield from block.required_during_scheduling_ignored_during_execution or ()
    for weighted in block.preferred_during_scheduling_ignored_during_execution or ():
        yield weighted.pod_affinity_term


def _has_keys(term: PodAffinityTerm) -> bool:
    return bool(term.match_label_keys or term.mismatch_label_keys)


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
    """The selector and one expression per key that the pod has; a selector that matches nothing stays that.

    A pod from a live cluster has the expressions already and keeps its selector as it is.
    """
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
