"""What can go wrong between bayplan and an API server, by what the caller may do next."""

from typing import Final

import msgspec


class CredentialsError(Exception):
    """Says which file, context or plugin keeps bayplan from logging in; never holds a secret."""


class UnreachableError(Exception):
    """The request was not sent: the server cannot have acted on it, so it is safe to try again."""


class AmbiguousError(Exception):
    """The request may have been sent and the answer is lost: the server may or may not have acted.

    Callers keep what they assumed until they have read the object.
    """


DECODE_ERRORS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding any bytes or values by msgspec can raise; whoever reads answers, files and bodies catches them."""
