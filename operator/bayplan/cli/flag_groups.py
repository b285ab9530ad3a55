"""Flags by subject: a frozen dataclass of flags is a group, and a command takes groups."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar, get_type_hints

import click

from bayplan.cli.help_sections import OPTIONS, Command, SectionOption
from bayplan.logs.formats import redacted

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Flag:
    """What `click.Option` takes but for the default: the annotation of a group's field, or a command's decorator."""

    def __init__(self, *names: str, **attributes: Any) -> None:  # noqa: ANN401  click's
        self.names: Final = names
        self._attributes: Final = attributes

    def __call__(self, command: _Function) -> _Function:
        """Give a function that is to be a command this flag."""
        return click.option(*self.names, **self._attributes)(command)

    def option(self, parameter: str, default: object, section: str) -> click.Option:
        """Return it as a command's: its value is given as `parameter`, and the help lists it under `section`."""
        return SectionOption([parameter, *self.names], default=default, section=section, **self._attributes)


def command_of_groups(name: str, *, examples: Sequence[str] = ()) -> Callable[[Callable[..., None]], click.Command]:
    """Make the command `name` of a function: a flag for each field of the dataclasses that it has for parameters.

    A field is annotated with a `Flag`, and has its default. The function gets an instance of each group. The `section`
    of a group is where the help lists its flags. Names of fields must differ among the groups of a command.
    """

    def command_of(function: Callable[..., None]) -> click.Command:
        groups: dict[str, type[Any]] = {
            parameter: annotation
            for parameter, annotation in get_type_hints(function).items()
            if isinstance(annotation, type) and is_dataclass(annotation)
        }
        owners = {field.name: parameter for parameter, group in groups.items() for field in fields(group)}

        def flags_to_groups(**flags: object) -> None:
            given: dict[str, dict[str, object]] = {parameter: {} for parameter in groups}
            for field, value in flags.items():
                given[owners[field]][field] = value
            function(**{parameter: group(**given[parameter]) for parameter, group in groups.items()})

        options: list[click.Parameter] = [option for group in groups.values() for option in _options(group)]
        return Command(name, params=options, callback=flags_to_groups, help=inspect.getdoc(function), examples=examples)

    return command_of


def flag_values(*groups: object) -> dict[str, str]:
    """Return the value of each flag of `groups` that has one, by the flag's name without its dashes.

    They are to be shown: passwords in URLs are hidden.
    """
    values: dict[str, str] = {}
    for group in groups:
        flags = _flags(type(group))
        for name, flag in flags.items():
            value = getattr(group, name)
            if value is not None and value != ():
                shown = ",".join(value) if isinstance(value, (list, tuple)) else str(value)
                values[_long_name(flag)] = redacted(shown)
    return values


def _options(group: type[Any]) -> Iterator[click.Option]:
    flags, section = _flags(group), getattr(group, "section", OPTIONS)
    for field in fields(group):
        yield flags[field.name].option(field.name, field.default, section)


def _flags(group: type[Any]) -> dict[str, Flag]:
    hints = get_type_hints(group, include_extras=True)
    return {field.name: hints[field.name].__metadata__[0] for field in fields(group)}


def _long_name(flag: Flag) -> str:
    return next(each for each in flag.names if each.startswith("--")).removeprefix("--")


class OutputFormat(StrEnum):
    """How an answer is written."""

    TABLE = "table"
    JSON = "json"
    WIDE = "wide"
    SUMMARY = "summary"


def _output(*formats: OutputFormat, text: str) -> Callable[[Any], Any]:
    values = [each.value for each in formats]
    return click.option(
        "--output", "-o", type=click.Choice(values), default="table", metavar="|".join(values), help=text
    )


_TABLE, _JSON = OutputFormat.TABLE, OutputFormat.JSON
OUTPUT: Final = _output(_TABLE, _JSON, text="For people, or for programs.")
SUMMARY_OUTPUT: Final = _output(_TABLE, OutputFormat.SUMMARY, _JSON, text="For people, its end alone, or for programs.")
WIDE_OUTPUT: Final = _output(_TABLE, OutputFormat.WIDE, _JSON, text="For people, with all columns, or for programs.")
