"""What may be wrong with an expression, and with its evaluation for one device."""


class CompileError(Exception):
    """An expression that cannot be used for any device; the message is upstream's where that is known."""


class EvaluationError(Exception):
    """An expression without a value for one device; the message is upstream's.

    `&&`, `||` and the macros that stand for them absorb it where the other operand decides.
    """


class StoppedError(Exception):
    """An evaluation that ended on the spot: nothing absorbs it, as it is no EvaluationError."""


class LimitExceededError(StoppedError):
    """An evaluation that was stopped as it took too long."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


def no_overload(detail: str = "") -> EvaluationError:
    """Return what a function says of arguments that it does not take."""
    return EvaluationError(f"no such overload: {detail}" if detail else "no such overload")
