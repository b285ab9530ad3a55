"""Program: the `bayplan` command with each thread's CPU time profiled, into `DIR/<thread>.pstats`.

It slows the scheduler down: look at the shares, not at the times. What the HTTP client does outside the
interpreter is in no profile.
"""

import cProfile
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from types import FrameType

from bayplan.cli import main as bayplan

_JOIN_SECONDS = 10.0
_THREADS = {"MainThread": "main", "kopf": "kopf"}


def new_profile() -> cProfile.Profile:
    """Returns a profile that counts the CPU time of the thread it is enabled in."""
    return cProfile.Profile(time.thread_time)


def main() -> None:
    """Takes the directory for the profiles, then bayplan's own arguments."""
    if sys.version_info >= (3, 12):
        sys.exit("profiling one thread at a time needs Python 3.11: from 3.12 on a process has one profiler")
    directory, arguments = Path(sys.argv[1]), sys.argv[2:]
    # Loaded before the clock runs: start-up is not what is looked for.
    for module in ("bayplan.cli.run", "bayplan.controller.app"):
        import_module(module)

    profiles = {"MainThread": new_profile()}

    def start_profile(_frame: FrameType, _event: str, _argument: object) -> None:
        name = threading.current_thread().name
        if name in _THREADS:
            profile = profiles.setdefault(name, new_profile())
            profile.enable()
        else:
            sys.setprofile(None)

    threading.setprofile(start_profile)
    profiles["MainThread"].enable()
    try:
        bayplan(arguments)
    finally:
        profiles["MainThread"].disable()
        for thread in threading.enumerate():
            if thread.name in profiles and thread is not threading.current_thread():
                thread.join(_JOIN_SECONDS)
        for name, profile in profiles.items():
            profile.dump_stats(directory / f"{_THREADS[name]}.pstats")


if __name__ == "__main__":
    main()
