"""A cluster on this machine to try bayplan on: `make playground`. docs/playground.md says what is in it."""

import argparse
import contextlib
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType

from e2e.arguments import positive
from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.build import BuildError
from e2e.controlplane.container import UnsupportedPodError
from e2e.controlplane.toolchain import ToolchainError
from e2e.playground.cluster import TURN_SECONDS, start_playground
from e2e.playground.terminal import alone_in_the_foreground
from e2e.playground.tour import guide

FEWEST_NODES = 16
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the playground until a signal, or the given minutes; returns 0, or 1 if a part of it failed."""
    options = options_of(arguments)
    with alone_in_the_foreground():
        for each in _ENDING:
            signal.signal(each, _end)
        try:
            _play(options)
        except KeyboardInterrupt:
            pass  # that is how it ends
        except (BuildError, ToolchainError, UnsupportedPodError, RuntimeError, OSError) as error:
            say(str(error))
            return 1
        say("nothing is left")
    return 0


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Returns the command line; argparse ends the process with 2 where it is wrong."""
    parser = argparse.ArgumentParser(prog="python -m e2e.playground", description=__doc__)
    parser.add_argument(
        "--nodes",
        type=_enough_nodes,
        default=50,
        help=f"nodes of 4 CPUs, the last two with four GPUs each; at least {FEWEST_NODES} (default: %(default)s)",
    )
    parser.add_argument(
        "--replicas", type=positive, default=2, help="instances of bayplan, of which one leads (default: %(default)s)"
    )
    parser.add_argument("--minutes", type=positive, help="end after so many minutes; without it, Ctrl-C does")
    return parser.parse_args(arguments)


def say(message: str) -> None:
    """Writes a line about what is going on."""
    _write(f"playground: {message}")


def _play(options: argparse.Namespace) -> None:
    deadline = None if options.minutes is None else time.monotonic() + 60.0 * options.minutes
    with start_playground(nodes=options.nodes, replicas=options.replicas, say=say) as playground:
        try:
            say(f"waiting for {options.replicas} replicas of bayplan")
            playground.wait_leading(options.replicas)
            text = guide(
                folder=playground.folder,
                repository=REPOSITORY,
                nodes=options.nodes,
                address=playground.address_file,
                prometheus=playground.prometheus_url,
            )
            _write(text)
            while deadline is None or time.monotonic() < deadline:
                playground.turn()
                time.sleep(TURN_SECONDS)
        finally:
            _ignore_signals()
            say("ending all processes")


def _end(signal_number: int, frame: FrameType | None) -> None:
    _ignore_signals()
    raise KeyboardInterrupt


def _ignore_signals() -> None:
    """A second Ctrl-C does not stop the cleaning up."""
    for each in _ENDING:
        signal.signal(each, signal.SIG_IGN)


def _write(text: str) -> None:
    # A terminal that is gone is no reason to leave processes behind.
    with contextlib.suppress(OSError):
        print(text, flush=True)


def _enough_nodes(text: str) -> int:
    number = int(text)
    if number < FEWEST_NODES:
        raise argparse.ArgumentTypeError(f"{text}: the pods to try need at least {FEWEST_NODES}")
    return number


if __name__ == "__main__":
    sys.exit(main())
