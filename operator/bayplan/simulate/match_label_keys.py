"""What `matchLabelKeys` and `mismatchLabelKeys` name, written into selectors as the API server does for new pods."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from msgspec import structs

from bayplan.api.meta_objects import LabelSelector, LabelSelectorRequirement
from bayplan.api.objects import PodAffinity, PodAffinityTerm, PodSpec, TopologySpreadConstraint
from bayplan.simulate.refusals import AdmissionError

Rule = TypeVar("Rule", PodAffinityTerm, TopologySpreadConstraint)


def merged_selectors(spec: PodSpec, labels: Mapping[str, str]) -> dict[str, object]:
    """The fields that change as the labels of a new pod are written into its selectors.

    Schedulers look nowhere else for them (upstream: pkg/registry/core/pod/strategy.go
    applyMatchLabelKeysAndMismatchLabelKeys).

    Raises:
        AdmissionError: a selector has a label already that `matchLabelKeys` names.
    """
    changes: dict[str, object] = {}
    if (affinity := spec.affinity) is not None:
        near, far = (block and _block(block, labels) for block in (affinity.pod_affinity, affinity.pod_anti_affinity))
        changes["affinity"] = structs.replace(affinity, pod_affinity=near, pod_anti_affinity=far)
    if constraints := spec.topology_spread_constraints:
        changes["topology_spread_constraints"] = [_merged(each, labels) for each in constraints]
    return changes


def _block(block: PodAffinity, labels: Mapping[str, str]) -> PodAffinity:
    required = block.required_during_scheduling_ignored_during_execution
    preferred = block.preferred_during_scheduling_ignored_during_execution
    return PodAffinity(
        required_during_scheduling_ignored_during_execution=required and [_merged(term, labels) for term in required],
        preferred_during_scheduling_ignored_during_execution=preferred
        and [structs.replace(each, pod_affinity_term=_merged(each.pod_affinity_term, labels)) for each in preferred],
    )


def _merged(rule: Rule, labels: Mapping[str, str]) -> Rule:
    """The rule with one expression per key that the pod has; a selector that matches nothing stays that."""
    selector = rule.label_selector
    if selector is None:
        return rule
    for key in rule.match_label_keys or ():
        if key in labels and key in (selector.match_labels or ()):
            raise AdmissionError(f"spec: Invalid value: {key[:64]!a}: exists in both matchLabelKeys and labelSelector")
    return structs.replace(rule, label_selector=_with(selector, _wanted(rule, labels)))


def _with(selector: LabelSelector, wanted: Iterable[LabelSelectorRequirement]) -> LabelSelector:
    held = selector.match_expressions or []
    added = [each for each in wanted if each not in held]
    return structs.replace(selector, match_expressions=[*held, *added]) if added else selector


def _wanted(
    rule: PodAffinityTerm | TopologySpreadConstraint, labels: Mapping[str, str]
) -> Iterator[LabelSelectorRequirement]:
    unlike = rule.mismatch_label_keys if isinstance(rule, PodAffinityTerm) else None
    for operator, keys in (("In", rule.match_label_keys), ("NotIn", unlike)):
        yield from (LabelSelectorRequirement(key, operator, [labels[key]]) for key in keys or () if key in labels)
