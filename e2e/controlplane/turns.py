"""What goes on beside a test, turn by turn."""

import threading
from types import TracebackType
from typing import Self


class TurnTaker:
    """Takes a turn every so often, in a thread, as long as the block lasts; the one under way is finished.

    Whoever is one says in `turn` what it does. What that raises ends the thread, which pytest tells.
    """

    def __init__(self, name: str, *, every_seconds: float) -> None:
        self._every_seconds = every_seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()

    def turn(self) -> None:
        """Does once what it is for."""
        raise NotImplementedError

    def _run(self) -> None:
        while not self._stopping.wait(self._every_seconds):
            self.turn()
