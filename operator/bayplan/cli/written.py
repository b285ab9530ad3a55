"""How a command writes a file that it was asked for, or ends."""

from collections.abc import Iterable

import click
from click.exceptions import Exit

from bayplan.cli import FAILED


def written(output: str, pieces: Iterable[bytes]) -> str:
    """Write the pieces to `output` and return what messages call that; where it cannot be, end with one line."""
    from bayplan.config.errors import quote_unprintable  # noqa: PLC0415
    from bayplan.snapshot.snapshot import STDOUT, write  # noqa: PLC0415

    shown = "standard output" if output == STDOUT else quote_unprintable(output)
    try:
        write(output, pieces)
    except (OSError, ValueError) as error:
        if output == STDOUT or isinstance(error, BrokenPipeError):
            raise
        # A name with a null byte is a ValueError.
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        click.echo(f"{shown}: cannot be written: {reason}", err=True)
        raise Exit(FAILED) from None
    return shown
