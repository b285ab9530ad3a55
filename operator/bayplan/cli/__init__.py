"""The `bayplan` command: finds the command that is meant and loads that one alone."""

import gc
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Final

import typer

from bayplan import __version__
from bayplan.cli.kube_scheduler_flags import as_go_reads, refusals

BAD_INPUT: Final = 2
"""Exit code for files and flags that are wrong."""
INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as shells have it."""

_EPILOG: Final = """Examples:

  bayplan demo

  bayplan simulate --cluster examples/cluster/worked-example.yaml --explain

  bayplan run --config scheduler.yaml

Exit codes: 0 success, 1 failure, 2 wrong input."""


@dataclass(frozen=True, slots=True)
class _Command:
    """Where a command lives, and its line in the overview, which does not load it."""

    name: str
    module: str
    attribute: str
    help: str


_COMMANDS: Final = (
    _Command("run", "bayplan.cli.run", "run", "Schedule the pods of a cluster that name one of our profiles."),
    _Command("simulate", "bayplan.cli.simulate", "simulate", "Schedule pods from files, without a cluster."),
    _Command("demo", "bayplan.cli.demo", "demo", "Watch a made-up cluster being packed. Needs nothing."),
    _Command("config", "bayplan.cli.config", "config_app", "Check, show and convert configuration files."),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line `arguments`, the process's own by default; always ends in SystemExit.

    Wrong input is one line per error on standard error and exit code 2. Output that cannot be written is one line and
    exit code 1. Ctrl-C and a reader that goes away end the command without a word.
    """
    _open_closed_streams()
    arguments = as_go_reads(sys.argv[1:] if arguments is None else arguments)
    if arguments[:1] == ["run"] and (refused := list(refusals(arguments))):
        typer.echo("\n".join(refused), err=True)
        sys.exit(BAD_INPUT)
    # Integer columns need no BLAS; its idle threads would still spin and take memory.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name from a file must not end the command because the terminal cannot show it.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            with nothing_collected():
                command = application(arguments)
            command(args=arguments, prog_name="bayplan")
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        sys.exit(1)
    except OSError as error:
        # What commands cannot read or serve they report themselves: what is left is their output.
        _discard_output()
        with suppress(OSError):
            typer.echo(f"bayplan: {error.filename or 'standard output'}: {error.strerror or error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


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

    For imports: collecting takes a fifth of their time and finds nothing in what is there to stay.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def application(arguments: Sequence[str]) -> typer.Typer:
    """The application with the commands that `arguments` name loaded, and the others by their help text alone.

    Loading only those keeps `--help` quick, and everything but `run` free of kopf and the API client.
    """
    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        epilog=_EPILOG,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_overview)
    for command in _COMMANDS:
        if command.name not in arguments:
            app.command(command.name, help=command.help)(_placeholder)
            continue
        loaded = getattr(import_module(command.module), command.attribute)
        if isinstance(loaded, typer.Typer):
            app.add_typer(loaded, name=command.name, help=command.help)
        else:
            app.command(command.name)(loaded)
    return app


def _placeholder() -> None:
    """Stands for a command that was not named, so that the overview lists it."""


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bayplan {__version__}")
        raise typer.Exit


def _overview(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """A bin-packing second scheduler for Kubernetes that explains itself."""
