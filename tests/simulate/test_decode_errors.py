"""What is wrong with a field is said in Kubernetes' words, and never in the decoder's."""

from typing import Annotated, Any, Literal

import msgspec
import pytest

from bayplan.simulate.decode_errors import field_error


class Inner(msgspec.Struct):
    key: str | None = None
    on: bool = False
    share: float = 0.0
    size: int | str = 0
    labels: dict[str, str] = {}


class Outer(msgspec.Struct):
    name: str
    items: list[Inner] = []
    count: Annotated[int, msgspec.Meta(ge=1, le=9)] = 1
    names: Annotated[list[str], msgspec.Meta(min_length=1)] = msgspec.field(default_factory=lambda: [""])
    effect: Literal["a", "b"] = "a"


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "a string": ({"items": [{"key": 5}]}, "items[0].key: Invalid value: integer: must be a string"),
    "true or false": ({"items": [{"on": "yes"}]}, "items[0].on: Invalid value: string: must be true or false"),
    "a number": ({"items": [{"share": True}]}, "items[0].share: Invalid value: boolean: must be a number"),
    "an integer": ({"count": None}, "count: Invalid value: null: must be an integer"),
    "one of two": ({"items": [{"size": []}]}, "items[0].size: Invalid value: list: must be an integer or a string"),
    "a list": ({"items": {}}, "items: Invalid value: object: must be a list"),
    "an object": ({"items": [1.5]}, "items[0]: Invalid value: number: must be an object"),
    "at least": ({"count": 0}, "count: must be greater than or equal to 1"),
    "at most": ({"count": 10}, "count: must be less than or equal to 9"),
    "not empty": ({"names": []}, "names: Required value"),
    "one of a few": ({"effect": "c"}, 'effect: Unsupported value: "c"'),
    "in a map": ({"items": [{"labels": {"a": 1}}]}, "items[0].labels[...]: Invalid value: integer: must be a string"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_field_is_told_with_what_it_must_be(case):
    fields, told = CASES[case]
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.json.decode(msgspec.json.encode({"name": "x", **fields}), type=Outer)
    assert field_error(raised.value) == told


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        (Outer, {}, "name: Required value"),
        (list[Outer], [{"name": "x"}, {}], "[1].name: Required value"),
        (Outer, [], "Invalid value: list: must be an object"),
    ],
)
def test_what_is_missing_is_told_by_its_name(kind, value, told):
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.convert(value, kind)
    assert field_error(raised.value) == told


def test_other_errors_keep_their_words():
    assert field_error(ValueError("not a quantity: 'x'")) == "not a quantity: 'x'"
