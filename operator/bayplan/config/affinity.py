"""Node affinity inside plugin arguments, with the checks of component-helpers (scheduling/corev1/nodeaffinity)."""

import re
from typing import Final

from bayplan.api.meta_objects import LabelSelector, LabelSelectorRequirement
from bayplan.api.objects import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from bayplan.config.errors import child, invalid, item, quote, unsupported
from bayplan.config.fields import Fields
from bayplan.config.label_names import label_key_problems, label_value_problems

_LABEL_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS: Final = ("In", "NotIn")
_DECIMAL: Final = re.compile(r"[-+]?[0-9]{1,30}", re.ASCII)


def decode_node_affinity(fields: Fields) -> NodeAffinity:
    """A v1 NodeAffinity whose terms all parse."""
    required = None
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    if fields.has(name):
        with fields.nested(name) as selector:
            required = NodeSelector(list(selector.objects("nodeSelectorTerms", _term)) or None)
    preferred = fields.objects("preferredDuringSchedulingIgnoredDuringExecution", _preferred)
    return NodeAffinity(required, list(preferred) or None)


def decode_label_selector(fields: Fields, name: str) -> LabelSelector | None:
    """A metav1 LabelSelector, not checked further; None when it is missing."""
    if not fields.has(name):
        return None
    with fields.nested(name) as selector:
        return LabelSelector(
            selector.string_map("matchLabels"),
            list(selector.objects("matchExpressions", _label_requirement)) or None,
        )


def _preferred(fields: Fields) -> PreferredSchedulingTerm:
    weight = fields.integer("weight") or 0
    with fields.nested("preference") as preference:
        return PreferredSchedulingTerm(weight, _term(preference))


def _term(fields: Fields) -> NodeSelectorTerm:
    labels = fields.objects("matchExpressions", _label_expression)
    names = fields.objects("matchFields", _field_expression)
    return NodeSelectorTerm(list(labels) or None, list(names) or None)


def _label_requirement(fields: Fields) -> LabelSelectorRequirement:
    values = list(fields.strings("values")) or None
    return LabelSelectorRequirement(fields.string("key") or "", fields.string("operator") or "", values)


def _requirement(fields: Fields) -> NodeSelectorRequirement:
    values = list(fields.strings("values")) or None
    return NodeSelectorRequirement(fields.string("key") or "", fields.string("operator") or "", values)


def _label_expression(fields: Fields) -> NodeSelectorRequirement:
    requirement = _requirement(fields)
    if requirement.operator not in _LABEL_OPERATORS:
        fields.errors.append(unsupported(fields.at("operator"), requirement.operator, _LABEL_OPERATORS))
        return requirement
    if problems := label_key_problems(requirement.key):
        fields.invalid("key", requirement.key, "; ".join(problems))
    _check_values(fields, requirement)
    for index, value in enumerate(requirement.values or ()):
        if problems := label_value_problems(value):
            path = f"{item(fields.at('values'), index)}[{quote(requirement.key)[1:-1]}]"
            fields.errors.append(invalid(path, value, "; ".join(problems)))
    return requirement


def _check_values(fields: Fields, requirement: NodeSelectorRequirement) -> None:
    path = fields.at("values")
    values = requirement.values or []
    shown = values or None
    if requirement.operator in {"In", "NotIn"} and not values:
        fields.errors.append(invalid(path, shown, "for 'in', 'notin' operators, values set can't be empty"))
    elif requirement.operator in {"Exists", "DoesNotExist"} and values:
        fields.errors.append(invalid(path, shown, "values set must be empty for exists and does not exist"))
    elif requirement.operator in {"Gt", "Lt"}:
        if len(values) != 1:
            fields.errors.append(invalid(path, shown, "for 'Gt', 'Lt' operators, exactly one value is required"))
        for index, value in enumerate(values):
            if not _DECIMAL.fullmatch(value) or not -(2**63) <= int(value) < 2**63:
                detail = "for 'Gt', 'Lt' operators, the value must be an integer"
                fields.errors.append(invalid(item(path, index), value, detail))


def _field_expression(fields: Fields) -> NodeSelectorRequirement:
    requirement = _requirement(fields)
    if requirement.operator not in _FIELD_OPERATORS:
        fields.errors.append(unsupported(fields.at("operator"), requirement.operator, _FIELD_OPERATORS))
    elif len(requirement.values or ()) != 1:
        fields.errors.append(invalid(child(fields.path, "values"), requirement.values, "must have one element"))
    return requirement
