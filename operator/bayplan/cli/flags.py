"""Commands of click from functions that take groups of flags, and how the help of all of them looks."""

import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any, Final, get_type_hints

import click

from bayplan.cli.help_sections import OPTIONS, Command, SectionOption
from bayplan.config.errors import ConfigurationError, FieldError, forbidden
from bayplan.config.feature_gates import FLAG as FEATURE_GATES_FLAG
from bayplan.config.flags import FILE_NAME, FILE_TEXT, FLAG, PORT, Flag, Read, flag
from bayplan.logs.formats import HIDDEN, redacted

FEATURE_GATES: Final = partial(
    flag,
    f"{FEATURE_GATES_FLAG} NAME=BOOL,...",
    "Switch features of kube-scheduler on or off, such as StorageCapacityScoring=false. Can be given several times.",
    default=(),
)
OUTPUT_FILE: Final = partial(
    flag,
    "--output -o FILE",
    "Where to write; compressed if it ends in .gz; - is standard output.",
    required=True,
    type=FILE_TEXT,
)
SCHEDULER_NAME: Final = partial(flag, "--scheduler-name NAME", "Rename the only profile: pods ask for it by this name.")

STDIN: Final = "-"
"""The file name that stands for standard input."""

_QUERY: Final = re.compile(r"(://[^\s?#]*)[?#]\S+")

_FILES: Final = dict.fromkeys(("FILE", "[FILE]", "FOLDER"), FILE_NAME)
_TYPES: Final[Mapping[str, Any]] = {**_FILES, "INT": int, "FLOAT": float, "PORT": PORT}
"""What values are whose metavar says it."""

_GroupFlag = tuple[str, Read | None, click.Parameter]
"""A field that is a flag, what reads its value, and the parameter of the command."""


def command(
    *, examples: Sequence[str], parent: click.Group | None = None, short_help: str | None = None
) -> Callable[[Callable[..., None]], click.Command]:
    """Make a command of a function whose parameters are groups: dataclasses that have a flag for each field.

    The function gets an instance of each group. The `section` of a group is where the help lists its flags. All that
    is wrong with flags that are `read` is told together; a group's `__post_init__` may add to it.
    """

    def command_of(function: Callable[..., None]) -> click.Command:
        hints = get_type_hints(function)
        groups = {name: kind for name, kind in hints.items() if isinstance(kind, type) and is_dataclass(kind)}
        flags = {name: _flags(kind) for name, kind in groups.items()}

        def call(**values: object) -> None:
            errors: list[FieldError] = []
            read = {name: _read(kind, flags[name], values, errors) for name, kind in groups.items()}
            if errors:
                raise ConfigurationError(errors)
            function(**read)

        made = Command(
            function.__name__,
            params=[parameter for each in flags.values() for _, _, parameter in each],
            callback=call,
            help=inspect.getdoc(function),
            short_help=short_help,
            examples=examples,
        )
        if parent is not None:
            parent.add_command(made)
        return made

    return command_of


def a_number(_context: click.Context, _option: click.Parameter, number: float | None) -> float | None:
    """Refuse NaN, which is neither below the least of a range nor above the most; the callback of such flags."""
    if number is not None and math.isnan(number):
        raise click.BadParameter("nan is not a number")
    return number


def check_standard_input(**files: Iterable[object]) -> None:
    """Refuse standard input for more than one file, as nothing is left for the second; groups of flags rely on it.

    Raises:
        ConfigurationError: with the name of the second flag.
    """
    first, *more = [name for name, each in files.items() for file in each if str(file) == STDIN] or [""]
    if more:
        raise ConfigurationError([forbidden(f"--{more[0]}", f"standard input is what --{first} reads")])


def flag_values() -> dict[str, str]:
    """Return what each flag of the command that runs has for a value, if any, by its name without dashes.

    They are to be shown: passwords in URLs are hidden, and what follows the path.
    """
    context = click.get_current_context()
    shown: dict[str, str] = {}
    for each in context.command.params:
        value = context.params.get(each.name or "")
        if value is not None and value != ():
            text = ",".join(value) if isinstance(value, tuple) else str(value)
            shown[_long_name(each).removeprefix("--")] = redacted(_QUERY.sub(rf"\1?{HIDDEN}", text))
    return shown


def _flags(group: type[Any]) -> Sequence[_GroupFlag]:
    return [
        (each.name, each.metadata[FLAG].read, _parameter(each.name, each.metadata[FLAG], each.default, group))
        for each in fields(group)
        if FLAG in each.metadata
    ]


def _parameter(field: str, declared: Flag, default: object, group: type[Any]) -> click.Parameter:
    metavar, attributes = declared.metavar, {"help": declared.help, **declared.attributes}
    if metavar is not None:
        attributes["metavar"] = metavar
        if metavar in _TYPES:
            attributes.setdefault("type", _TYPES[metavar])
        elif "|" in metavar and metavar.islower():
            attributes.setdefault("type", click.Choice(metavar.split("|")))
    if not declared.names:
        return click.Argument([field], required=not (metavar or "").startswith("["), **attributes)
    # What is made of the text that was given cannot be shown, nor given, as the text.
    is_shown = isinstance(default, (str, int, float)) and (declared.read is None or "type" in attributes)
    if is_shown or metavar is None:
        attributes["default"] = default
    return SectionOption(
        declared.names,
        is_flag=True if metavar is None else None,
        multiple=isinstance(default, (tuple, frozenset)),
        section=getattr(group, "section", OPTIONS),
        **attributes,
    )


def _read(
    group: type[Any], flags: Sequence[_GroupFlag], values: Mapping[str, object], errors: list[FieldError]
) -> object:
    """Make a group of the values of its flags, and note what is wrong with them."""
    given: dict[str, object] = {}
    for field, read, parameter in flags:
        value = values[parameter.name or ""]
        if value is not None and value != ():
            with noted(errors):
                given[field] = value if read is None else read(_long_name(parameter), value)
    with noted(errors):
        return group(**given)
    return None


@contextmanager
def noted(errors: list[FieldError]) -> Iterator[None]:
    """Add what is wrong to `errors`, and go on behind the block; commands that tell all mistakes at once rely on it."""
    try:
        yield
    except ConfigurationError as error:
        errors += error.errors


def _long_name(parameter: click.Parameter) -> str:
    return next((each for each in parameter.opts if each.startswith("--")), parameter.opts[0])
