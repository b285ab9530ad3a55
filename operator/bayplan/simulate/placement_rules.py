"""What the API server refuses in the fields that say where a pod may go.

Upstream: pkg/apis/core/validation/validation.go, apimachinery pkg/apis/meta/v1/validation.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from bayplan.api.meta_objects import LabelSelector
from bayplan.api.selectors import compile_label_selector, label_value_problems
from bayplan.config.errors import FieldError, forbidden, invalid, item, required
from bayplan.config.fields import Fields
from bayplan.config.labels import decode_node_affinity, validate_label_name
from bayplan.simulate.documents import Decoder

Fielded = Mapping[str, Any]
"""An object of a file whose fields have the right types, or are null."""

_SELECTOR: Final = Decoder(LabelSelector)


def label_selector(selector: Fielded) -> Iterator[FieldError]:
    """Yield what is wrong with a label selector."""
    if text := compile_label_selector(_SELECTOR(selector)).error:
        yield FieldError("", text)


def node_affinity(affinity: Fielded) -> Iterator[FieldError]:
    """Yield what is wrong with a node affinity."""
    fields = Fields(affinity)
    decode_node_affinity(fields)
    # The API server lets a bound pass that is no number; such a term matches no node.
    yield from (each for each in fields.errors if not each.message.endswith("the value must be an integer"))
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    if affinity.get(name) is not None and not affinity[name].get("nodeSelectorTerms"):
        yield required(f"{name}.nodeSelectorTerms", "must have at least one node selector term")


def affine(fields: Fielded) -> Iterator[FieldError]:
    """Yield what is wrong with what a spread constraint and a term of pod affinity both have."""
    if key := fields.get("topologyKey"):
        yield from validate_label_name(key, "topologyKey")
    else:
        yield required("topologyKey", "can not be empty")
    match, mismatch = (fields.get(name) or () for name in ("matchLabelKeys", "mismatchLabelKeys"))
    for name, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and fields.get("labelSelector") is None:
            yield forbidden(name, "must not be specified when labelSelector is not set")
            continue
        for index, key in enumerate(keys):
            yield from validate_label_name(key, item(name, index))
            if name == "matchLabelKeys" and key in mismatch:
                yield invalid(item(name, index), key, "exists in both matchLabelKeys and mismatchLabelKeys")


def spread_constraint(constraint: Fielded) -> Iterator[FieldError]:
    """Yield what is wrong with a topology spread constraint."""
    yield from affine(constraint)
    least = constraint.get("minDomains")
    for name, number in (("maxSkew", constraint.get("maxSkew") or 0), ("minDomains", 1 if least is None else least)):
        if number <= 0:
            yield invalid(name, number, "must be greater than zero")
    if least is not None and constraint["whenUnsatisfiable"] != "DoNotSchedule":
        detail = "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
        yield invalid("minDomains", least, detail)


def weighted(preferred: Fielded) -> Iterator[FieldError]:
    """Yield what is wrong with the weight of a preference."""
    if not 1 <= (weight := preferred.get("weight") or 0) <= 100:
        yield invalid("weight", weight, "must be in the range 1-100")


def toleration(toleration: Fielded) -> Iterator[FieldError]:
    """Yield what is wrong with a toleration."""
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
