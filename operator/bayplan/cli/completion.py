"""`bayplan completion`: the scripts that have a shell complete bayplan's commands, flags and values."""

from dataclasses import dataclass
from typing import Final

import click
from click.shell_completion import get_completion_class

from bayplan.cli import COMPLETION
from bayplan.cli.flags import command
from bayplan.config.flags import flag

_PROGRAM: Final = "bayplan"


@dataclass(frozen=True)
class _Flags:
    shell: str = flag("bash|zsh|fish", "The shell that reads the script.")


@command(
    examples=(
        "source <(bayplan completion bash)",
        "bayplan completion bash >~/.local/share/bash-completion/completions/bayplan",
        'bayplan completion zsh >"${fpath[1]}/_bayplan"',
        "bayplan completion fish >~/.config/fish/completions/bayplan.fish",
    ),
)
def completion(flags: _Flags) -> None:
    """Print the script that has a shell complete commands, flags, their values and file names.

    The shell reads it at its start: the examples show where each one looks for it. bash must be 4.4 or newer.
    """
    kind = get_completion_class(flags.shell)
    if kind is None:
        raise LookupError(flags.shell)
    script = kind(click.Group(_PROGRAM), {}, _PROGRAM, COMPLETION)
    # Not `source()`: it runs the bash that it finds, to warn of an old one.
    click.echo(script.source_template % script.source_vars(), nl=False)
