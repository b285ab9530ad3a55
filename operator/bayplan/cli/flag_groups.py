"""Flags by subject: a frozen dataclass of options is a group, and a command takes groups."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, get_type_hints

from typer.models import OptionInfo

from bayplan.logs.redaction import redacted

_Command = Callable[..., object]


def with_flag_groups(command: _Command) -> _Command:
    """Return `command` as typer takes it: with a flag for each field of the dataclasses that it has for parameters.

    A field is annotated as typer's options are, and has its default. `command` gets an instance of each group. Names of
    fields must differ among the groups of a command.
    """
    groups: dict[str, type[Any]] = {
        name: parameter.annotation
        for name, parameter in inspect.signature(command, eval_str=True).parameters.items()
        if isinstance(parameter.annotation, type) and is_dataclass(parameter.annotation)
    }
    owners = {field.name: name for name, group in groups.items() for field in fields(group)}

    def flags_to_groups(**flags: object) -> object:
        given: dict[str, dict[str, object]] = {name: {} for name in groups}
        for flag, value in flags.items():
            given[owners[flag]][flag] = value
        return command(**{name: group(**given[name]) for name, group in groups.items()})

    flags_to_groups.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # what typer reads
        [_parameter(group, field) for group in groups.values() for field in fields(group)]
    )
    flags_to_groups.__name__, flags_to_groups.__doc__ = command.__name__, command.__doc__
    return flags_to_groups


def flag_values(*groups: object) -> dict[str, str]:
    """Return the value of each flag of `groups` that has one, by the flag's name without its dashes.

    They are to be shown: passwords in URLs are hidden.
    """
    values: dict[str, str] = {}
    for group in groups:
        hints = get_type_hints(type(group), include_extras=True)
        for field in fields(group):  # type: ignore[arg-type]  # groups are dataclasses
            value = getattr(group, field.name)
            if value is not None:
                option: OptionInfo = hints[field.name].__metadata__[0]
                names = [str(each) for each in (option.default, *(option.param_decls or ()))]
                name = next(each for each in names if each.startswith("--"))
                values[name.removeprefix("--")] = redacted(",".join(value) if isinstance(value, list) else str(value))
    return values


def _parameter(group: type, field: Field[Any]) -> inspect.Parameter:
    annotation = get_type_hints(group, include_extras=True)[field.name]
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
