"""`python -m bayplan` is `bayplan`, and both begin here."""

import os
import signal
import sys
from typing import NoReturn


def main() -> None:
    """Run the command line of the process; always ends in SystemExit, or ends the process.

    `bayplan run` heeds SIGTERM from here on, before anything is loaded, which takes long on a busy machine.
    """
    if sys.argv[1:2] == ["run"]:
        signal.signal(signal.SIGTERM, _end_before_it_began)
    try:
        from bayplan import cli  # noqa: PLC0415  after the handler is there
    except KeyboardInterrupt:
        os._exit(128 + signal.SIGINT)  # Without a word, as later.

    try:
        cli.main()
    except SystemExit as end:
        if "bayplan.api.client" in sys.modules:
            from bayplan.cli.process import end_process  # noqa: PLC0415  few commands need it

            end_process(int(end.code or 0))
        raise


def _end_before_it_began(*_: object) -> NoReturn:
    """Heed SIGTERM until the scheduler does: there is nothing yet to be finished.

    As the first process of a container it would not even get a signal that it does not handle.
    """
    os._exit(0)


if __name__ == "__main__":
    main()
