"""What the types of a configuration declare of their fields: name and type, and the rule that values must keep.

A rule stands in the annotation of its field: decoders check values by it, and the schema says it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Final, get_type_hints

from bayplan.config.errors import FieldError, child, invalid, item, required, unsupported

_WIDE: Final = "64 bits"
Int64 = Annotated[int, _WIDE]
"""The kind of integers that may be larger than 32 bits."""

OWN: Final = "bayplan.io"
"""Marks a field that kube-scheduler does not have. In the file it stands under this key."""

_DURATION: Final = r"(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"
ANY_DURATION: Final = f"^[-+]?{_DURATION}"
"""How durations are written."""


def _nothing_wrong(_value: object, _path: str, _owner: object) -> Iterable[FieldError]:
    return ()


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """What the values of a field must be."""

    schema: dict[str, Any] = field(default_factory=dict)
    """The rule in JSON Schema, which may accept more than `check` does, never less."""
    check: Callable[[Any, str, Any], Iterable[FieldError]] = _nothing_wrong
    """Gives what is wrong with a value; it gets the value, its path and the object it is of."""
    required: bool = False
    """Whether the field must be given."""


NO_RULE: Final = Rule()
NOT_NEGATIVE_DURATION: Final = Rule({"pattern": f"^(?!-.*[1-9])[-+]?{_DURATION}"})
"""A duration of zero or more. The schema says only this; decoders check the rest."""


def within(lowest: int, highest: int | None, detail: str, *, or_zero: bool = False, required: bool = False) -> Rule:
    """The rule for integers in a range; in `detail`, `{0}` is the object. `or_zero`: 0 is read as the default."""

    def check(value: int | None, path: str, owner: object) -> Iterable[FieldError]:
        if value is not None and (value < lowest or (highest is not None and value > highest)):
            yield invalid(path, value, detail.format(owner))

    limits = {"minimum": 0 if or_zero else lowest, "maximum": highest}
    return Rule({name: limit for name, limit in limits.items() if limit is not None}, check, required)


PERCENTAGE: Final = within(0, 100, "not in valid range [0, 100]")
NOT_NEGATIVE: Final = within(0, None, "not in valid range [0, inf)")


def word_of(words: Sequence[str]) -> Rule:
    """The rule for a word that must be given and be one of `words`."""

    def check(value: str, path: str, _owner: object) -> Iterable[FieldError]:
        if not value:
            yield required(path, "can not be empty")
        elif value not in words:
            yield unsupported(path, value, words)

    return Rule({"enum": list(words)}, check, required=True)


def each_is(rule: Rule) -> Rule:
    """The rule for lists of strings that each keep `rule`."""

    def check(values: Iterable[str], path: str, owner: object) -> Iterable[FieldError]:
        for index, value in enumerate(values):
            yield from rule.check(value, item(path, index), owner)

    return Rule({"items": {"type": "string", **rule.schema}}, check)


@dataclass(frozen=True, slots=True)
class Setting:
    """A field of a type, as its annotation declares it."""

    name: str
    key: str
    """Its name in files."""
    hint: Any
    """Its type."""
    rule: Rule
    own: bool
    """Whether bayplan adds it to the arguments of a plugin."""


def _settings_of(kind: type) -> tuple[Setting, ...]:
    settings = []
    for name, hint in get_type_hints(kind, include_extras=True).items():
        marks = getattr(hint, "__metadata__", ())
        plain = Int64 if _WIDE in marks else hint.__origin__ if marks else hint
        rule = next((each for each in marks if isinstance(each, Rule)), NO_RULE)
        settings.append(Setting(name, camel_case(name), plain, rule, OWN in marks))
    return tuple(settings)


settings_of: Final[Callable[[Any], tuple[Setting, ...]]] = cache(_settings_of)
"""Returns the fields of a class in the order of their declaration."""


def broken_rules(value: object, path: str) -> Iterable[FieldError]:
    """Give what is wrong with the fields of the object at `path` by their rules."""
    for each in settings_of(type(value)):
        where = child(child(path, OWN) if each.own else path, each.key)
        yield from each.rule.check(getattr(value, each.name), where, value)


def camel_case(name: str) -> str:
    """Return the key that a field in snake case has in files."""
    first, *rest = name.split("_")
    return first + "".join("HTTPS" if part == "https" else part.capitalize() for part in rest)
