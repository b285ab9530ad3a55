"""File names among the arguments of commands: any name is taken as it is, and shells complete it."""

from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem


class FileNameType(click.ParamType[Path]):
    """The name of a file, which need not exist: what reads or writes it says in one line what is wrong.

    `click.Path` looks at the file by itself, and tells of some errors in words of its own.
    """

    name = "file"

    def convert(self, value: str | Path, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the name as a path."""
        return Path(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Have the shell complete the name, since it knows how to quote it."""
        return complete_file_name(ctx, param, incomplete)


def complete_file_name(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Have the shell complete a file's name, for parameters that may also be something else."""
    return [CompletionItem(incomplete, type="file")]


FILE_NAME: Final = FileNameType()
"""The type of every parameter that is a file's name."""
