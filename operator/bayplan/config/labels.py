"""What is wrong with names of labels and resources, and with the selectors in plugin arguments.

Source: component-helpers scheduling/corev1/nodeaffinity.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from bayplan.api.meta_objects import LabelSelector, LabelSelectorRequirement
from bayplan.api.objects import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
)
from bayplan.api.selectors import NAME_PATTERN, label_key_problems, label_value_problems
from bayplan.config.errors import FieldError, child, invalid, invalid_whole, item, quote, required, unsupported
from bayplan.config.fields import Fields
from bayplan.config.settings import Rule, within, word_of


def validate_label_name(name: str, path: str, _owner: object = None) -> list[FieldError]:
    """One error for each problem of a label key."""
    return [invalid(path, name, problem) for problem in label_key_problems(name)]


def _validate_group(name: str, path: str, _owner: object) -> list[FieldError]:
    slash = [invalid(path, name, "resource group name can't contain '/'")] if "/" in name else []
    return [*slash, *validate_label_name(name, path)]


def _validate_extended_resource(name: str, path: str, _owner: object) -> list[FieldError]:
    """Errors unless `name` is one an extender may manage (pkg/apis/core/v1/helper: IsExtendedResourceName)."""
    if not name:
        # A missing name is an error already.
        return []
    if errors := validate_label_name(name, path):
        return errors
    native = "/" not in name or "kubernetes.io/" in name
    if native or name.startswith("requests.") or label_key_problems(f"requests.{name}"):
        return [invalid(path, name, "is an invalid extended resource name")]
    return []


def _validate_topology_key(key: str, path: str, _owner: object) -> list[FieldError]:
    return validate_label_name(key, path) if key else [required(path, "can not be empty")]


LABEL_NAME: Final = Rule({"pattern": f"^([^/]+/)?{NAME_PATTERN}$"}, validate_label_name)
RESOURCE_GROUP: Final = Rule({"pattern": f"^{NAME_PATTERN}$"}, _validate_group)
EXTENDED_RESOURCE: Final = Rule({"pattern": "^([^/]+/.+)?$"}, _validate_extended_resource, required=True)


_LABEL_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS: Final = ("In", "NotIn")
API_RULES: Final[Mapping[type, Mapping[str, Rule]]] = {
    TopologySpreadConstraint: {
        "max_skew": within(1, None, "not in valid range (0, inf)", required=True),
        "topology_key": Rule(LABEL_NAME.schema, _validate_topology_key, required=True),
        "when_unsatisfiable": word_of(("DoNotSchedule", "ScheduleAnyway")),
    },
    # Fewer operators are for fields, so expressions are checked where they are read.
    NodeSelectorRequirement: {"operator": Rule({"enum": list(_LABEL_OPERATORS)}, required=True)},
}
"""The rules for the fields of the API's own types, which the API server checks elsewhere."""
_DECIMAL: Final = re.compile(r"[-+]?[0-9]{1,30}", re.ASCII)


def decode_node_affinity(fields: Fields) -> NodeAffinity:
    """A v1 NodeAffinity whose terms all parse."""
    demanded = fields.optional(
        "requiredDuringSchedulingIgnoredDuringExecution",
        lambda selector: NodeSelector(list(selector.objects("nodeSelectorTerms", _term)) or None),
    )
    preferred = fields.objects("preferredDuringSchedulingIgnoredDuringExecution", _preferred)
    return NodeAffinity(demanded, list(preferred) or None)


def decode_label_selector(fields: Fields) -> LabelSelector:
    """A metav1 LabelSelector, not checked further."""
    expressions = fields.objects("matchExpressions", lambda each: each.build(LabelSelectorRequirement))
    return LabelSelector(fields.string_map("matchLabels"), list(expressions) or None)


def _preferred(fields: Fields) -> PreferredSchedulingTerm:
    with fields.nested("preference") as preference:
        # kube-scheduler leaves `preference` out where it says what is wrong with an expression, and does not look at
        # those of terms that count nothing.
        checked = fields.integer("weight") not in (None, 0)
        return fields.build(PreferredSchedulingTerm, preference=_term(preference, fields.path, checked=checked))


def _term(fields: Fields, shown: str = "", *, checked: bool = True) -> NodeSelectorTerm:
    """A term; `shown` is its path in errors about what expressions say, if it is another than its own."""

    def decoded(each: Fields, check: Callable[[Fields, NodeSelectorRequirement, str], None]) -> NodeSelectorRequirement:
        requirement = each.build(NodeSelectorRequirement)
        if checked:
            check(each, requirement, (shown or fields.path) + each.path.removeprefix(fields.path))
        return requirement

    labels = fields.objects("matchExpressions", lambda each: decoded(each, _check_label_expression))
    names = fields.objects("matchFields", lambda each: decoded(each, _check_field_expression))
    return NodeSelectorTerm(list(labels) or None, list(names) or None)


def _check_label_expression(fields: Fields, requirement: NodeSelectorRequirement, path: str) -> None:
    if requirement.operator not in _LABEL_OPERATORS:
        fields.errors.append(unsupported(child(path, "operator"), requirement.operator, _LABEL_OPERATORS))
        return
    if problems := label_key_problems(requirement.key):
        fields.errors.append(invalid(child(path, "key"), requirement.key, "; ".join(problems)))
    _check_values(fields, requirement, path)
    for index, value in enumerate(requirement.values or ()):
        if problems := label_value_problems(value):
            where = f"{item(child(path, 'values'), index)}[{quote(requirement.key)[1:-1]}]"
            fields.errors.append(invalid(where, value, "; ".join(problems)))


def _check_values(fields: Fields, requirement: NodeSelectorRequirement, path: str) -> None:
    path = child(path, "values")
    values = requirement.values or []
    shown = values or _nothing_as_given(fields)
    if requirement.operator in {"In", "NotIn"} and not values:
        detail = "for 'in', 'notin' operators, values set can't be empty"
        fields.errors.append(invalid_whole(path, shown, detail))
    elif requirement.operator in {"Exists", "DoesNotExist"} and values:
        fields.errors.append(invalid_whole(path, values, "values set must be empty for exists and does not exist"))
    elif requirement.operator in {"Gt", "Lt"}:
        if len(values) != 1:
            detail = "for 'Gt', 'Lt' operators, exactly one value is required"
            fields.errors.append(invalid_whole(path, shown, detail))
        for index, value in enumerate(values):
            if not _DECIMAL.fullmatch(value) or not -(2**63) <= int(value) < 2**63:
                detail = "for 'Gt', 'Lt' operators, the value must be an integer"
                fields.errors.append(invalid(item(path, index), value, detail))


def _nothing_as_given(fields: Fields) -> list[str] | None:
    """Values that are missing, or an empty list."""
    return [] if fields.has("values") else None


def _check_field_expression(fields: Fields, requirement: NodeSelectorRequirement, path: str) -> None:
    if requirement.operator not in _FIELD_OPERATORS:
        fields.errors.append(unsupported(child(path, "operator"), requirement.operator, _FIELD_OPERATORS))
    elif len(requirement.values or ()) != 1:
        shown = requirement.values or _nothing_as_given(fields)
        fields.errors.append(invalid_whole(child(path, "values"), shown, "must have one element"))
