"""Whether bayplan answers as Kubernetes did."""

from tests.cel.recording import Answered, answer_of, made_device

# What no selector needs, which bayplan refuses: docs/scope.md.
_REFUSED = ("url(", "isIP(", ".format(", "duration(", "timestamp(")
# What the API server refuses to store is not looked for: bayplan checks no types, and has a value or an error for it.
_TYPES = (
    "found no matching overload",
    "expected type",
    "must evaluate to bool",
    "panic: ",
    "wrong number of arguments",
)


def difference(recorded: Answered) -> str:
    """What differs, in one line, or nothing."""
    ours = answer_of(recorded.expression, made_device(recorded.device))
    theirs = recorded.answer
    if "compile" in theirs and ("compile" in ours or any(each in theirs["compile"] for each in _TYPES)):
        return ""
    refused = "bayplan has no function" in ours.get("compile", "")
    if ours == theirs or (refused and any(each in recorded.expression for each in _REFUSED)):
        return ""
    return f"{recorded.expression}\n  upstream {theirs}\n  bayplan  {ours}"
