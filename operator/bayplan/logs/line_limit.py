"""How many lines one place in the code may write in a minute."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

LINES_PER_MINUTE: Final = 60
"""So many lines of one place are written in a minute; what is more is counted."""

_WINDOW_SECONDS: Final = 60.0


@dataclass(slots=True)
class _Window:
    ends: float
    lines: int = 0


@dataclass(slots=True)
class LineLimit:
    """Lets LINES_PER_MINUTE lines of each place through from its first one on, and counts those that are left out.

    Places are lines of code, so there are only so many. Times are in seconds of one clock. Whoever asks takes what
    `left_out` has first, when that is `due`.
    """

    _windows: dict[str, _Window] = field(default_factory=dict)
    _due: float | None = None

    def admits(self, place: str, now: float) -> bool:
        """Count a line, and return whether it may be written."""
        window = self._windows.get(place)
        if window is None or now >= window.ends:
            window = self._windows[place] = _Window(now + _WINDOW_SECONDS)
        window.lines += 1
        if window.lines <= LINES_PER_MINUTE:
            return True
        self._due = window.ends if self._due is None else min(self._due, window.ends)
        return False

    def due(self) -> float | None:
        """Return when `left_out` has something to tell; None while nothing was left out."""
        return self._due

    def left_out(self, now: float) -> Iterator[tuple[str, int]]:
        """Emit the places whose minute is over, with the number of lines left out, each once."""
        self._due = None
        for place, window in list(self._windows.items()):
            if window.lines <= LINES_PER_MINUTE:
                continue
            if now >= window.ends:
                del self._windows[place]
                yield place, window.lines - LINES_PER_MINUTE
            else:
                self._due = window.ends if self._due is None else min(self._due, window.ends)
