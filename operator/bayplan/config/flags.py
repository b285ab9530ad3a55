"""Flags as fields: a command's options are a frozen dataclass, and each field declares its flag."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
from click.shell_completion import CompletionItem

from bayplan.config.errors import ConfigurationError, invalid
from bayplan.config.feature_gates import BOOLEANS
from bayplan.config.fields import parse_duration

Read = Callable[[str, Any], Any]
"""Makes the value of a field of a flag's name and what was given with it; raises ConfigurationError."""

FLAG: Final = "flag"
"""Where the metadata of a field has its `Flag`."""


class Flag(NamedTuple):
    """A flag as the field of a group declares it."""

    names: Sequence[str]
    metavar: str | None
    help: str
    read: Read | None
    attributes: dict[str, Any]
    """What else `click.Option` takes."""


def flag(spec: str, text: str, *, default: Any = None, read: Read | None = None, **attributes: Any) -> Any:  # noqa: ANN401  of the field
    """Declare a field as a flag, which `spec` names as the help does: `--output -o table|json`; `text` is its help.

    Without a value behind its name it is a switch, and without a name it is an argument. Words in lower case are the
    only values, a FILE or FOLDER is a path, and a BOOL, DURATION, INT, FLOAT or PORT what it says. A flag whose default
    is a collection can be given several times. A flag that was not given leaves its field the default, which is made
    anew if it is a function. `read` makes the value of what was given; all that is wrong is then told at once.
    """
    words = spec.split()
    names = [word for word in words if word.startswith("-")]
    metavar = None if words[-1] in names else words[-1]
    if metavar is None and default is None and "/" not in spec:
        default = False
    declared = Flag(names, metavar, text, read or _READERS.get(metavar or ""), attributes)
    if callable(default):
        return field(default_factory=default, metadata={FLAG: declared})
    return field(default=default, metadata={FLAG: declared})


class FileNameType(click.ParamType[Any]):
    """The name of a file, which need not exist: what reads or writes it says in one line what is wrong.

    `click.Path` looks at the file by itself, and tells of some errors in words of its own.
    """

    name = "file"

    def __init__(self, made: Callable[[str], object]) -> None:
        self._made = made

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """Return the name as what the field holds; raises ConfigurationError for an empty one of a mere file."""
        if not value and self._made is Path and param is not None:
            # A path made of it would be the folder that the command runs in.
            given = param.metavar if isinstance(param, click.Argument) else max(param.opts, key=len)
            raise ConfigurationError([invalid(given or "", value, "must be the name of a file")])
        return self._made(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Have the shell complete the name, since it knows how to quote it."""
        return [CompletionItem(incomplete, type="file")]


FILE_NAME: Final = FileNameType(Path)
"""The type of every flag that is a file's name and nothing else."""
FILE_TEXT: Final = FileNameType(str)
"""The type of flags that may also be something else, such as `-` for standard input."""
PORT: Final = click.IntRange(0, 65535)

KUBECONFIG: Final = partial(
    flag,
    "--kubeconfig FILE",
    "How to reach the cluster; otherwise $KUBECONFIG, the pod's own account, ~/.kube/config.",
)
CONTEXT: Final = partial(flag, "--context NAME", "The kubeconfig context to use.")
MASTER: Final = partial(flag, "--master URL", "The API server, in place of the one that the kubeconfig names.")


def boolean(name: str, text: str) -> bool:
    """Read what Go's strconv.ParseBool reads; raises ConfigurationError."""
    if text not in BOOLEANS:
        raise ConfigurationError([invalid(name, text, "must be true or false")])
    return BOOLEANS[text]


def duration(name: str, text: str, *, least: timedelta = timedelta.min, example: str = 'such as "15s"') -> timedelta:
    """Read a duration of no less than `least`, of which `example` is one; raises ConfigurationError."""
    read = parse_duration(text)
    if read is None or read < least:
        raise ConfigurationError([invalid(name, text, f"must be a duration {example}")])
    return read


_READERS: Final[Mapping[str, Read]] = {"BOOL": boolean, "DURATION": duration}
"""What reads the values whose metavar says what they are."""


def seconds(name: str, text: str) -> float:
    """Read a duration of no less than 0; raises ConfigurationError."""
    return duration(name, text, least=timedelta(), example='such as "10s"').total_seconds()


def items(_name: str, values: Sequence[str]) -> tuple[str, ...]:
    """Read lists with commas between their items, as one list."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())
