"""Prints what profiles say: the functions that take the CPU, per thread."""

import io
import pstats
import re
from pathlib import Path

_SHOWN = 30
_LONG_PATH = re.compile(r"(?<=\s)/\S*?((?:[^/\s]+/){0,2}[^/\s]+)$")


def hot_functions(directory: Path) -> str:
    """Returns, for each profile in a directory, the dearest functions by own time and by time with callees."""
    parts: list[str] = []
    for path in sorted(directory.glob("*.pstats")):
        for order in ("tottime", "cumulative"):
            text = io.StringIO()
            pstats.Stats(str(path), stream=text).sort_stats(order).print_stats(_SHOWN)
            parts.append(f"== thread {path.stem}, by {order}, CPU seconds ==\n{_short(text.getvalue())}")
    return "\n".join(parts) or f"no profiles in {directory}"


def _short(text: str) -> str:
    """Cuts the folders off, but leaves the package: two modules of one name are told apart."""
    lines = (_LONG_PATH.sub(r"\1", line) for line in text.splitlines())
    return "\n".join(line for line in lines if line.strip())
