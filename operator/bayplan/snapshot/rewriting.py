"""Wire objects made anew, with some of their fields otherwise."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import structs

Rule = Callable[[Any], Any]
"""What becomes of the value of a field that is not None."""


@dataclass(eq=False)
class Rewriting:
    """Makes structs anew: a rule for a field says what becomes of it, other fields are gone through.

    `rules` are by type and name of a field; those of a type hold for what derives from it. `named` has rules for fields
    of a name in whatever type, `whole` those for structs of a type as a whole. `text` says what becomes of any other
    text, in fields, lists and dictionaries; keys of dictionaries stay.
    """

    rules: Mapping[tuple[type, str], Rule]
    text: Rule
    named: Mapping[str, Rule] = field(default_factory=dict, kw_only=True)
    whole: Mapping[type, Rule] = field(default_factory=dict, kw_only=True)
    _fields: dict[type, list[tuple[str, Rule]]] = field(default_factory=dict, init=False)

    def __call__(self, value: Any) -> Any:  # noqa: ANN401 - whatever a field holds
        """The value anew; the same object where nothing of it is otherwise."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, msgspec.Struct):
            whole = self.whole.get(type(value))
            if whole is not None:
                return whole(value)
            changes = {}
            for name, rule in self._of(type(value)):
                held = getattr(value, name)
                if held is not None and (new := rule(held)) is not held:
                    changes[name] = new
            return structs.replace(value, **changes) if changes else value
        if isinstance(value, list):
            items = [self(each) for each in value]
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        if isinstance(value, dict):
            entries = {key: self(each) for key, each in value.items()}
            return entries if any(entries[key] is not value[key] for key in value) else value
        return value

    def _of(self, kind: type[msgspec.Struct]) -> list[tuple[str, Rule]]:
        found = self._fields.get(kind)
        if found is None:
            found = [(each.name, self._rule(kind, each.name)) for each in structs.fields(kind)]
            self._fields[kind] = found
        return found

    def _rule(self, kind: type, name: str) -> Rule:
        of_type = (self.rules[each, name] for each in kind.__mro__ if (each, name) in self.rules)
        return next(of_type, self.named.get(name, self))


def as_it_is(value: Any) -> Any:  # noqa: ANN401 - see Rule
    """Return the value: the rule for what stays."""
    return value


def structs_in(value: Any) -> Iterator[msgspec.Struct]:  # noqa: ANN401 - see Rule
    """Yield the struct and all that are in it, and in the lists and dictionaries that it holds."""
    if isinstance(value, msgspec.Struct):
        yield value
        for name in value.__struct_fields__:
            yield from structs_in(getattr(value, name))
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from structs_in(each)
