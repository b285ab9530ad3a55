"""Label selectors and node selector terms, compiled once and matched often; values of field selectors.

A selector that the API server would refuse can still sit in an old object. It never matches and never raises.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from operator import gt, lt
from typing import Final

from bayplan.api.meta_objects import LabelSelector, LabelSelectorRequirement
from bayplan.api.objects import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.api.quantity import parse_int64

Labels = Mapping[str, str]
_Test = Callable[[Labels], bool]

_NAME_FIELD = "metadata.name"
_FEW_TESTS = 8
_NO_KEYS: tuple[dict[str, list[_Test]], set[str]] = {}, set()

_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_MAX_NAME = 63
_MAX_SUBDOMAIN = 253
NAME_PATTERN: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_NAME_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{NAME_PATTERN}')"
)
_VALUE_PATTERN: Final = f"({NAME_PATTERN})?"
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{_VALUE_PATTERN}')"
)
_SUBDOMAIN_PATTERN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN_PATTERN}')"
)


class LabelMatcher:
    """A compiled label selector; affinity and spreading rules match pods and namespaces by it.

    Attributes:
        error: Why the selector is invalid and so never matches, or "".
        is_nothing: No labels can match.
        is_everything: All labels match: the selector is present and empty.
    """

    __slots__ = ("_by_key", "_needed", "_tests", "error", "is_everything", "is_nothing")

    def __init__(self, tests: list[tuple[str, _Test]] | None, error: str = "") -> None:
        self._tests = [test for _, test in tests or ()]
        # Pods have thousands of small selectors: those share what is empty.
        self._by_key, self._needed = _NO_KEYS
        if tests is not None and len(tests) > _FEW_TESTS:
            self._by_key, self._needed = {}, set()
            for key, test in tests:
                self._by_key.setdefault(key, []).append(test)
                if not test({}):
                    self._needed.add(key)
        self.error = error
        self.is_nothing = tests is None
        self.is_everything = tests is not None and not tests

    def matches(self, labels: Labels | None) -> bool:
        """Whether all requirements hold for `labels`; takes as long as there are labels, however many requirements."""
        if self.is_nothing:
            return False
        labels = labels or {}
        if not self._by_key:
            return all(test(labels) for test in self._tests)
        # A test looks at one label: those of labels that are missing all hold, or the label is needed.
        if len(self._needed) > len(labels) or not all(key in labels for key in self._needed):
            return False
        return all(test(labels) for key in labels for test in self._by_key.get(key, ()))


class NodeSelectorMatcher:
    """Compiled node selector terms, of which one must match; node affinity matches nodes by it.

    Attributes:
        errors: Why terms are invalid and so never match.
    """

    __slots__ = ("_terms", "errors")

    def __init__(self, terms: list[tuple[list[_Test], list[_Test]]], errors: list[str]) -> None:
        self._terms = terms
        self.errors = errors

    def matches(self, labels: Labels | None, node_name: str) -> bool:
        """Whether some term holds for a node of that name and these labels; without a name fields hold, as upstream."""
        labels = labels or {}
        fields = {_NAME_FIELD: node_name}
        return any(
            all(test(labels) for test in on_labels) and (not node_name or all(test(fields) for test in on_fields))
            for on_labels, on_fields in self._terms
        )


_NOTHING = LabelMatcher(None)


class _InvalidRequirementError(ValueError):
    """A requirement that the API server would refuse."""


def compile_label_selector(selector: LabelSelector | None) -> LabelMatcher:
    """A matcher for `selector`: None matches nothing, an empty selector everything, an invalid one nothing.

    Source: apimachinery pkg/apis/meta/v1/helpers.go, LabelSelectorAsSelector.
    """
    if selector is None:
        return _NOTHING
    try:
        tests = [(key, _test(key, "In", [value])) for key, value in (selector.match_labels or {}).items()]
        tests += [(r.key, _label_test(r)) for r in selector.match_expressions or ()]
    except _InvalidRequirementError as invalid:
        return LabelMatcher(None, error=str(invalid))
    return LabelMatcher(tests)


def compile_node_selector(selector: NodeSelector) -> NodeSelectorMatcher:
    """A matcher for a node selector; without terms it matches nothing."""
    return compile_node_selector_terms(selector.node_selector_terms)


def compile_node_selector_terms(terms: Iterable[NodeSelectorTerm] | None) -> NodeSelectorMatcher:
    """A matcher for terms of which one must hold; an empty or invalid term never does, and spares the others.

    Source: component-helpers scheduling/corev1/nodeaffinity/nodeaffinity.go.
    """
    compiled: list[tuple[list[_Test], list[_Test]]] = []
    errors: list[str] = []
    for index, term in enumerate(terms or ()):
        if not term.match_expressions and not term.match_fields:
            continue
        try:
            on_labels = [_node_test(r) for r in term.match_expressions or ()]
            on_fields = [_field_test(r) for r in term.match_fields or ()]
        except _InvalidRequirementError as invalid:
            errors.append(f"term {index}: {invalid}")
        else:
            compiled.append((on_labels, on_fields))
    return NodeSelectorMatcher(compiled, errors)


def is_label_key(key: str) -> bool:
    """Whether `key` is a valid label key: a name, or a DNS subdomain, a slash and a name."""
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= _MAX_SUBDOMAIN and _SUBDOMAIN.fullmatch(prefix)):
        return False
    return len(name) <= _MAX_NAME and _NAME.fullmatch(name) is not None


def is_label_value(value: str) -> bool:
    """Whether `value` is a valid label value: empty, or up to 63 characters that start and end alphanumeric."""
    return not value or (len(value) <= _MAX_NAME and _NAME.fullmatch(value) is not None)


def label_key_problems(key: str) -> list[str]:
    """What keeps `key` from being a label key (or qualified name); empty when it is one."""
    if is_label_key(key):
        return []
    parts = key.split("/")
    if len(parts) > 2:
        return [
            f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    problems = []
    if len(parts) == 2:
        if not parts[0]:
            problems.append("prefix part must be non-empty")
        else:
            problems += [f"prefix part {problem}" for problem in _subdomain_problems(parts[0])]
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > _MAX_NAME:
        problems.append(f"name part must be no more than {_MAX_NAME} bytes")
    if not _NAME.fullmatch(name[: _MAX_NAME * 4]):
        problems.append(f"name part {_NAME_RULE}")
    return problems


def label_value_problems(value: str) -> list[str]:
    """What keeps `value` from being a label value; empty when it is one."""
    if is_label_value(value):
        return []
    problems = []
    if len(value.encode()) > _MAX_NAME:
        problems.append(f"must be no more than {_MAX_NAME} bytes")
    if not _NAME.fullmatch(value):
        problems.append(_VALUE_RULE)
    return problems


def _subdomain_problems(value: str) -> list[str]:
    problems = []
    if len(value.encode()) > _MAX_SUBDOMAIN:
        problems.append(f"must be no more than {_MAX_SUBDOMAIN} bytes")
    # Dots and labels are checked apart: the pattern as a whole backtracks on long names.
    if not all(re.fullmatch(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?", part) for part in value.split(".")):
        problems.append(_SUBDOMAIN_RULE)
    return problems


def escape_field_value(value: str) -> str:
    """A value as field selectors want it (upstream: apimachinery fields.EscapeValue)."""
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


def _label_test(requirement: LabelSelectorRequirement) -> _Test:
    return _test(requirement.key, requirement.operator, requirement.values or [])


def _node_test(requirement: NodeSelectorRequirement) -> _Test:
    key, operator, values = requirement.key, requirement.operator, requirement.values or []
    if operator not in ("Gt", "Lt"):
        return _test(key, operator, values)
    _check(key, values)
    bound = parse_int64(values[0]) if len(values) == 1 else None
    if bound is None:
        raise _InvalidRequirementError(f"{operator} of {_shown(key)} needs exactly one integer")
    return _compares(key, gt if operator == "Gt" else lt, bound)


def _field_test(requirement: NodeSelectorRequirement) -> _Test:
    key, operator, values = requirement.key, requirement.operator, requirement.values or []
    if key != _NAME_FIELD:
        raise _InvalidRequirementError(f"field {_shown(key)} is not supported")
    if operator not in ("In", "NotIn") or len(values) != 1:
        raise _InvalidRequirementError(f"field {_NAME_FIELD} needs In or NotIn and exactly one value")
    wanted = values[0]
    if operator == "In":
        return lambda fields: fields[_NAME_FIELD] == wanted
    return lambda fields: fields[_NAME_FIELD] != wanted


def _test(key: str, operator: str, values: list[str]) -> _Test:
    if operator in ("In", "NotIn"):
        listed = _value_set(key, values)
        if operator == "In":
            return lambda labels: labels.get(key) in listed
        return lambda labels: labels.get(key) not in listed
    if operator in ("Exists", "DoesNotExist"):
        _check(key, values)
        if values:
            raise _InvalidRequirementError(f"{operator} of {_shown(key)} takes no values")
        return (lambda labels: key in labels) if operator == "Exists" else (lambda labels: key not in labels)
    raise _InvalidRequirementError(f"operator {_shown(operator)} is unknown")


def _value_set(key: str, values: list[str]) -> frozenset[str | None]:
    if not values:
        raise _InvalidRequirementError(f"In and NotIn of {_shown(key)} need a value")
    _check(key, values)
    return frozenset(values)


def _compares(key: str, holds: Callable[[int, int], bool], bound: int) -> _Test:
    def test(labels: Labels) -> bool:
        number = parse_int64(labels.get(key, ""))
        return number is not None and holds(number, bound)

    return test


def _check(key: str, values: Iterable[str]) -> None:
    if not is_label_key(key):
        raise _InvalidRequirementError(f"label key {_shown(key)} is invalid")
    for value in values:
        if not is_label_value(value):
            raise _InvalidRequirementError(f"value {_shown(value)} of label {_shown(key)} is invalid")


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MAX_NAME else text[:_MAX_NAME] + "...")
