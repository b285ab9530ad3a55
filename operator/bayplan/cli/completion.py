"""`bayplan completion`: the scripts that have a shell complete bayplan's commands, flags and values."""

from typing import Final

import click
from click.shell_completion import BashComplete, add_completion_class, get_completion_class, shell_complete

from bayplan.cli import COMPLETION
from bayplan.cli.help_sections import Command

_PROGRAM: Final = "bayplan"
_SHELLS: Final = ("bash", "zsh", "fish")


@click.command(
    "completion",
    cls=Command,
    examples=(
        "source <(bayplan completion bash)",
        "bayplan completion bash >~/.local/share/bash-completion/completions/bayplan",
        'bayplan completion zsh >"${fpath[1]}/_bayplan"',
        "bayplan completion fish >~/.config/fish/completions/bayplan.fish",
    ),
)
@click.argument("shell", type=click.Choice(_SHELLS), metavar="bash|zsh|fish", help="The shell that reads the script.")
def completion(*, shell: str) -> None:
    """Print the script that has a shell complete commands, flags, their values and file names.

    The shell reads it at its start: the examples show where each one looks for it. bash must be 4.4 or newer.
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise LookupError(shell)
    script = kind(click.Group(_PROGRAM), {}, _PROGRAM, COMPLETION)
    # Not `source()`: it runs the bash that it finds, to warn of an old one.
    click.echo(script.source_template % script.source_vars(), nl=False)


def complete(application: click.Command, asked: str) -> int:
    """Print what a shell's script asks for, such as `bash_complete`, and return the exit code; `main` relies on it."""
    add_completion_class(_BashComplete)
    try:
        return shell_complete(application, {}, _PROGRAM, COMPLETION, asked)
    except (KeyError, ValueError):
        # No shell asked: what was typed is not there, or not as shells say it.
        return 1


class _BashComplete(BashComplete):
    """bash takes `--output=json` for three words."""

    def get_completion_args(self) -> tuple[list[str], str]:
        words, incomplete = super().get_completion_args()
        return [word for word in words if word != "="], incomplete
