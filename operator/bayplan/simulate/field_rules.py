"""What the API server refuses in the fields that decisions read, beyond what its OpenAPI document says.

Upstream: pkg/apis/core/validation/validation.go, apimachinery pkg/apis/meta/v1/validation.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from bayplan.api.meta_objects import LabelSelector
from bayplan.api.objects import PodSpec
from bayplan.api.quantity import QuantityError, nano
from bayplan.api.selectors import compile_label_selector
from bayplan.config.errors import FieldError, child, duplicate, invalid, item, required
from bayplan.config.fields import Fields
from bayplan.config.labels import decode_node_affinity, label_value_problems, validate_label_name
from bayplan.simulate.documents import Decoder
from bayplan.simulate.refusals import AdmissionError, check_constraints, check_containers

Fielded = Mapping[str, Any]
"""An object of a file whose fields have the right types, or are null."""

_SELECTOR: Final = Decoder(LabelSelector)
_POD_SPEC: Final = Decoder(PodSpec)


def _labels(labels: Fielded | None, path: str) -> Iterator[FieldError]:
    for key, value in (labels or {}).items():
        where = child(path, key)
        yield from validate_label_name(key, where)
        yield from (invalid(where, value, problem) for problem in label_value_problems(value or ""))


def _label_selector(selector: Fielded) -> Iterator[FieldError]:
    if text := compile_label_selector(_SELECTOR(selector)).error:
        yield FieldError("", text)


def _node_affinity(affinity: Fielded) -> Iterator[FieldError]:
    errors: list[FieldError] = []
    decode_node_affinity(Fields(affinity, "", errors))
    # The API server lets a bound pass that is no number; such a term matches no node.
    yield from (each for each in errors if not each.message.endswith("the value must be an integer"))
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    if affinity.get(name) is not None and not affinity[name].get("nodeSelectorTerms"):
        yield required(f"{name}.nodeSelectorTerms", "must have at least one node selector term")


def _topology_key(fields: Fielded) -> Iterator[FieldError]:
    if key := fields.get("topologyKey"):
        yield from validate_label_name(key, "topologyKey")
    else:
        yield required("topologyKey", "can not be empty")


def _spread_constraint(constraint: Fielded) -> Iterator[FieldError]:
    yield from _topology_key(constraint)
    least = constraint.get("minDomains")
    for name, number in (("maxSkew", constraint.get("maxSkew") or 0), ("minDomains", 1 if least is None else least)):
        if number <= 0:
            yield invalid(name, number, "must be greater than zero")
    if least is not None and constraint["whenUnsatisfiable"] != "DoNotSchedule":
        detail = "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
        yield invalid("minDomains", least, detail)


def _weighted(preferred: Fielded) -> Iterator[FieldError]:
    if not 1 <= (weight := preferred.get("weight") or 0) <= 100:
        yield invalid("weight", weight, "must be in the range 1-100")


def _toleration(toleration: Fielded) -> Iterator[FieldError]:
    key, operator, value = (toleration.get(name) or "" for name in ("key", "operator", "value"))
    if key:
        yield from validate_label_name(key, "key")
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid("operator", operator, detail)
    if operator == "Exists" and value:
        yield invalid("operator", toleration.get("operator"), "value must be empty when `operator` is 'Exists'")
    yield from (invalid("value", value, problem) for problem in label_value_problems(value))
    if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
        yield invalid("effect", toleration.get("effect") or "", "must be 'NoExecute' when `tolerationSeconds` is set")


def _node_spec(spec: Fielded) -> Iterator[FieldError]:
    seen = set()
    for index, taint in enumerate(spec.get("taints") or ()):
        path = item("taints", index)
        yield from validate_label_name(taint.get("key") or "", child(path, "key"))
        value = taint.get("value") or ""
        yield from (invalid(child(path, "value"), value, problem) for problem in label_value_problems(value))
        pair = taint.get("key"), taint["effect"]
        if pair in seen:
            yield duplicate(path, "{}:{}".format(*pair))
        seen.add(pair)


def _pod_spec(spec: Fielded) -> Iterator[FieldError]:
    yield from _labels(spec.get("nodeSelector"), "nodeSelector")
    decoded = _POD_SPEC(spec)
    for check in (check_containers, lambda each: check_constraints(each.topology_spread_constraints or ())):
        try:
            check(decoded)
        except AdmissionError as error:
            path, _, message = str(error).removeprefix("spec.").partition(": ")
            yield FieldError(path, message)


def _quantity(value: object) -> Iterator[FieldError]:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        yield invalid("", value, "must be a quantity")
        return
    try:
        nano(value)
    except QuantityError as error:
        yield FieldError("", str(error))


RULES: Final[Mapping[str, Callable[[Any], Iterator[FieldError]]]] = {
    "LabelSelector": _label_selector,
    "LabelSelectorRequirement": lambda requirement: _label_selector({"matchExpressions": [requirement]}),
    "NodeAffinity": _node_affinity,
    "NodeSpec": _node_spec,
    "ObjectMeta": lambda meta: _labels(meta.get("labels"), "labels"),
    "PodAffinityTerm": _topology_key,
    "PodSpec": _pod_spec,
    "PreferredSchedulingTerm": _weighted,
    "Quantity": _quantity,
    "Toleration": _toleration,
    "TopologySpreadConstraint": _spread_constraint,
    "WeightedPodAffinityTerm": _weighted,
}
"""By the name of the definition that they are about; asked where the document has nothing against the object."""
