"""How a command gets what it asks for over the network, or writes a file, or ends."""

import asyncio
import sys
from collections.abc import Coroutine, Iterable
from typing import Any

import click
import msgspec
from click.exceptions import Exit

from bayplan.cli import BAD_INPUT, FAILED, tell_line


def answered(question: Coroutine[Any, Any, Any], kind: type | None = None) -> Any:  # noqa: ANN401 - of the kind
    """Return what a scheduler or an API server answers, understood as of a kind; where it does not, end with a line."""
    from bayplan.api.errors import CredentialsError  # noqa: PLC0415
    from bayplan.client.errors import CannotLogInError, ClientError  # noqa: PLC0415

    code = FAILED
    try:
        answer = asyncio.run(question)
        return answer if kind is None else msgspec.convert(answer, kind)
    except ClientError as error:
        tell_line(str(error))
        code = BAD_INPUT if isinstance(error, CannotLogInError) else FAILED
    except CredentialsError as error:
        tell_line(f"bayplan: {error}")
        code = BAD_INPUT
    except msgspec.ValidationError as error:
        tell_line(f"the scheduler is of another version, its answer is not understood: {error}; try -o json")
    sys.exit(code)


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
