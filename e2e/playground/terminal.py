"""Whom Ctrl-C reaches."""

import contextlib
import os
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def alone_in_the_foreground() -> Iterator[None]:
    """Has Ctrl-C reach this process, and not the `make` that started it, until the block ends.

    make would report an interrupt, and fail, however well this process ends. Ctrl-Z does nothing meanwhile, since
    nobody would be there to continue. Without a terminal, or in the background, nothing changes.
    """
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError:
        yield
        return
    group = os.getpgrp()
    if group == os.getpid() or os.tcgetpgrp(terminal) != group:
        os.close(terminal)
        yield
        return
    for each in (signal.SIGTTOU, signal.SIGTSTP):
        signal.signal(each, signal.SIG_IGN)
    os.setpgid(0, 0)
    os.tcsetpgrp(terminal, os.getpid())
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # the terminal may be gone
            os.tcsetpgrp(terminal, group)
        os.close(terminal)
