"""Program: the `bayplan` command with its event loop's CPU time profiled, into `DIR/main.pstats`.

It slows the scheduler down: look at the shares, not at the times. What the HTTP client does outside the
interpreter is in no profile.
"""

import cProfile
import sys
import time
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

from bayplan.cli import main as bayplan


def main() -> None:
    """Takes the directory for the profile, then bayplan's own arguments."""
    directory, arguments = Path(sys.argv[1]), sys.argv[2:]
    # Loaded before the clock runs: start-up is not what is looked for.
    for module in ("bayplan.cli.run", "bayplan.cli.serve"):
        import_module(module)
    profile = cProfile.Profile(time.thread_time)
    profile.enable()
    try:
        # A scheduler ends its process by itself, and nothing is written after that.
        with patch("bayplan.cli.serve.end_process", sys.exit):
            bayplan(arguments)
    finally:
        profile.disable()
        profile.dump_stats(directory / "main.pstats")


if __name__ == "__main__":
    main()
