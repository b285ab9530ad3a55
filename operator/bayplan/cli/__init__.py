"""The `bayplan` command: finds the command that is meant and loads that one alone."""

import gc
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Final, cast

import click
from click.exceptions import ClickException, Exit, NoArgsIsHelpError, UsageError
from click.shell_completion import BashComplete, CompletionItem, add_completion_class, shell_complete

from bayplan import __version__
from bayplan.cli.help_sections import CommandGroup
from bayplan.cli.kube_scheduler_flags import as_go_reads, refusals
from bayplan.config.errors import InputError, quote_unprintable
from bayplan.shown_text import printable

COMPLETION: Final = "_BAYPLAN_COMPLETE"
"""The variable that a shell's script sets when it asks for completions."""
FAILED: Final = 1
"""Exit code for what cannot be done: nothing answers, or a file cannot be written."""
BAD_INPUT: Final = 2
"""Exit code for files and flags that are wrong."""
INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as shells have it."""


_COMMANDS: Final = {
    "run": "Schedule the pods of a cluster that name one of our profiles.",
    "simulate": "Schedule pods from files, without a cluster.",
    "replay": "Say what a day of pods costs with each configuration.",
    "trace": "Make traces for replay.",
    "explain": "Ask a running scheduler why a pod is pending, or where it is.",
    "queue": "List the pods that wait for a running scheduler, and for what.",
    "web": "Show a cluster as a page: full nodes, and why pods wait.",
    "plan": "Say which moves would free a node, or have a pod fit.",
    "doctor": "Say what keeps a cluster from being packed.",
    "snapshot": "Write a live cluster to a file, for simulate.",
    "demo": "Watch a made-up cluster being packed. Needs nothing.",
    "config": "Check, show and convert configuration files.",
    "completion": "Print the script that has a shell complete.",
}
"""Each command's line in the overview, which does not load it; it lives under its name in the module of its name."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line `arguments`, the process's own by default; always ends in SystemExit.

    Wrong input is one line per error on standard error and exit code 2. Output that cannot be written is one line and
    exit code 1. Ctrl-C and a reader that goes away end the command without a word.
    """
    _open_closed_streams()
    arguments = as_go_reads(sys.argv[1:] if arguments is None else arguments)
    if arguments[:1] == ["run"] and (refused := list(refusals(arguments))):
        click.echo("\n".join(refused), err=True)
        sys.exit(BAD_INPUT)
    # Integer columns need no BLAS; its idle threads would still spin and take memory.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name from a file must not end the command because the terminal cannot show it.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            _run(arguments)
        finally:
            sys.stdout.flush()
    except Exit as end:
        sys.exit(end.exit_code)
    except InputError as error:
        with suppress(OSError):
            click.echo(str(error), err=True)
        sys.exit(BAD_INPUT)
    except ClickException as error:
        with suppress(OSError):
            _tell_usage(error)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        _discard_output()
        sys.exit(FAILED)
    except OSError as error:
        # What commands cannot read or serve they report themselves: what is left is their output.
        _discard_output()
        with suppress(OSError):
            tell_line(f"bayplan: {error.filename or 'standard output'}: {error.strerror or error}")
        sys.exit(FAILED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    sys.exit(0)


def _run(arguments: Sequence[str]) -> None:
    if COMPLETION in os.environ:
        raise Exit(_complete(os.environ[COMPLETION]))
    with application.make_context("bayplan", list(arguments)) as context:
        application.invoke(context)


class _BashComplete(BashComplete):
    """bash takes `--output=json` for three words."""

    def get_completion_args(self) -> tuple[list[str], str]:
        words, incomplete = super().get_completion_args()
        return [word for word in words if word != "="], incomplete


def _complete(asked: str) -> int:
    """Print what a shell's script asks for, such as `bash_complete`, and return the exit code."""
    add_completion_class(_BashComplete)
    try:
        return shell_complete(application, {}, "bayplan", COMPLETION, asked)
    except (KeyError, ValueError):
        # No shell asked: what was typed is not there, or not as shells say it.
        return 1


def tell_line(text: str) -> None:
    """Write `text` to standard error as one line, whatever the names in it hold; for errors that quote none."""
    click.echo(printable(text), err=True)


def _tell_usage(error: ClickException) -> None:
    """Say in one line what is wrong with the arguments; where there are none, help is what is missing."""
    if isinstance(error, NoArgsIsHelpError):
        error.show()
        return
    message = quote_unprintable(error.format_message())
    if not message.endswith((".", ")", "?")):
        message += "."
    if isinstance(error, UsageError) and error.ctx is not None:
        message += f" Try '{error.ctx.command_path} --help' for help."
    click.echo(f"Error: {message}", err=True)


def _open_closed_streams() -> None:
    """Have using a standard stream that was closed at the start fail as it does in C, where Python has None."""
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_WRONLY), "r")
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")


def _discard_output() -> None:
    """Drop what is not written yet: Python would complain once more when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def nothing_collected() -> Iterator[None]:
    """Keep the garbage collector away from what the block makes, then and for good.

    For imports, and for reading a cluster: collecting takes up to a fifth of the time and finds nothing in what is
    there to stay.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


class _Overview(CommandGroup):
    """Commands of which none but the one that is meant is loaded.

    That keeps `--help` quick, and everything but `run` free of kopf and the API client. What a command's own help need
    not wait for, such as numpy, is imported in its function.
    """

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        with nothing_collected():
            return cast("click.Command", getattr(import_module(f"bayplan.cli.{cmd_name}"), cmd_name))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the names of commands, and flags once a dash is typed; no command is loaded for its help."""
        items = [CompletionItem(name, help=text) for name, text in _COMMANDS.items() if name.startswith(incomplete)]
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*_COMMANDS.items()])


@click.group(
    "bayplan",
    cls=_Overview,
    commands=[click.Command(name, help=text) for name, text in _COMMANDS.items()],
    examples=(
        "bayplan demo",
        "bayplan simulate --cluster examples/cluster/worked-example.yaml --explain",
        "bayplan run --config scheduler.yaml",
    ),
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(__version__, prog_name="bayplan", message="%(prog)s %(version)s")
def application() -> None:
    """A bin-packing second scheduler for Kubernetes that explains itself.

    Exit codes: 0 success, 1 failure, 2 wrong input.
    """
