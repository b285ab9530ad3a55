"""What may be wrong with an expression, and with its evaluation for one device."""

from typing import Final

TOO_LONG: Final = "operation cancelled: actual cost limit exceeded"
"""What an evaluation is stopped with that takes too many steps, or too much memory."""


class CompileError(Exception):
    """An expression that cannot be used for any device; the message is upstream's where that is known."""


class EvaluationError(Exception):
    """An expression without a value for one device; the message is upstream's.

    `&&`, `||` and the macros that stand for them absorb it where the other operand decides.
    """


class StoppedError(Exception):
    """An evaluation that ended on the spot: nothing absorbs it, as it is no EvaluationError."""


def no_overload(detail: str = "") -> EvaluationError:
    """Return what a function says of arguments that it does not take."""
    return EvaluationError(f"no such overload: {detail}" if detail else "no such overload")
