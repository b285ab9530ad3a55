"""A configuration file whose content changes under a running scheduler."""

import stat
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from bayplan.config.bounded_file import UnreadableFileError, read_file
from bayplan.config.document import MAX_BYTES


class WatchedFile:
    """Tells when a file has another content than the one that was taken.

    The content decides, not the file: the kubelet swaps the link to the folder that a ConfigMap's file is in, editors
    put a new file in the place of the old one, and others write in place. So a change counts once it was seen twice:
    what is half written, or away for a moment, is not taken. Not being readable is a content like any other. A pipe,
    which can be read only once, never changes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_regular = False
        """Whether it is a file and not a pipe, as it was found first."""
        with suppress(OSError, ValueError):
            self.is_regular = stat.S_ISREG(path.stat().st_mode)
        self._taken = self._seen = self._content()

    def take(self) -> None:
        """Count what is there now as taken; call it before the file is read, so that a change meanwhile is seen."""
        self._taken = self._seen = self._content()

    def has_changed(self) -> bool:
        """Look at the file, and return whether it is another than the one that was taken, and the same as last time."""
        before, self._seen = self._seen, self._content()
        return before == self._seen != self._taken

    def _content(self) -> bytes:
        if not self.is_regular:
            return b""
        try:
            return sha256(read_file(self.path, MAX_BYTES + 1, only_regular=True)).digest()
        except UnreadableFileError as error:
            return str(error).encode()
