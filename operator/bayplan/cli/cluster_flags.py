"""The flags that say which cluster, as all commands that reach one have them."""

from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem

from bayplan.cli.flag_groups import Flag


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


KUBECONFIG: Final = Flag(
    "--kubeconfig",
    type=FILE_NAME,
    metavar="FILE",
    help="How to reach the cluster; otherwise $KUBECONFIG, the pod's own account, ~/.kube/config.",
)
CONTEXT: Final = Flag("--context", metavar="NAME", help="The kubeconfig context to use.")
MASTER: Final = Flag("--master", metavar="URL", help="The API server, in place of the one that the kubeconfig names.")
