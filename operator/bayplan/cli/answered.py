"""How a command gets what it asks for over the network, or ends."""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any

import msgspec

from bayplan.cli import BAD_INPUT, FAILED, tell_line


def answered(question: Coroutine[Any, Any, Any], kind: type | None = None) -> Any:  # noqa: ANN401 - of the kind
    """Return what is asked for, JSON read as of a kind if that is given; where there is no answer, end with a line."""
    from bayplan.api.errors import CredentialsError  # noqa: PLC0415
    from bayplan.client.errors import CannotLogInError, ClientError  # noqa: PLC0415

    code = FAILED
    try:
        answer = asyncio.run(question)
        return answer if kind is None else msgspec.json.decode(answer, type=kind)
    except ClientError as error:
        tell_line(str(error))
        code = BAD_INPUT if isinstance(error, CannotLogInError) else FAILED
    except CredentialsError as error:
        tell_line(f"bayplan: {error}")
        code = BAD_INPUT
    except msgspec.ValidationError as error:
        tell_line(f"the scheduler is of another version, its answer is not understood: {error}; try -o json")
    sys.exit(code)
