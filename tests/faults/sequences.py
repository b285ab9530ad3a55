"""Random sequences of faults, each checked when they are over: `python -m tests.faults.sequences --count 1000`.

A sequence that breaks a promise is shortened to the steps that it takes, and printed with the command that repeats it.
"""

import argparse
import json
import logging
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.distributions_searched_once import distributions_searched_once
from tests.faults.final_state import broken, p17_p21_status, p19_quiet
from tests.faults.history import History
from tests.faults.steps import Step, World, draw
from tests.faults.virtual_time import cancel_all, run

SETTLE_SECONDS = 250.0
LOOKED_AT_AGAIN_SECONDS = 110.0
"""What is missing up to the five minutes after which each waiting pod is tried again."""
_MOST_TRIES = 400


def outcome(seed: int, steps: Sequence[Step]) -> list[str]:
    """Carry out the steps, let everything settle, and return the promises that were broken."""
    return run(_outcome(seed, steps))


async def _outcome(seed: int, steps: Sequence[Step]) -> list[str]:
    world = World(seed)
    await world.live_through(steps)
    await world.pause(SETTLE_SECONDS)
    found = [*History(world.api).broken(), *broken(world.api, world.life)]
    writes = len(world.api.writes)
    await world.pause(LOOKED_AT_AGAIN_SECONDS)
    # A condition whose four tries all failed is written when its pod is tried again.
    found += [*p19_quiet(world.api, writes), *p17_p21_status(world.api)]
    await cancel_all()
    return found


def with_reloads(seed: int) -> list[Step]:
    """The steps of a seed, with a change of the configuration after every third."""
    rng = random.Random(seed)
    steps = []
    for step in draw(seed):
        steps.append(step)
        if rng.random() < 1 / 3:
            steps.append(Step("reconfigure", {"spreads": rng.random() < 0.5}))
    return steps


def failure(seed: int, steps: Sequence[Step]) -> list[str]:
    """As `outcome`, where an exception is a broken promise, too."""
    try:
        return outcome(seed, steps)
    except Exception as error:  # noqa: BLE001  whatever escapes is what is looked for
        return [f"P25 {type(error).__name__}: {error}"]


def shortened(seed: int, steps: list[Step]) -> list[Step]:
    """The steps that are left when each that can be left out is, while the same promise is still broken."""
    promise, tries = _promise(failure(seed, steps)), 0
    size = len(steps) // 2
    while size and tries < _MOST_TRIES:
        start = 0
        while start < len(steps) and tries < _MOST_TRIES:
            fewer = steps[:start] + steps[start + size :]
            tries += 1
            if _promise(failure(seed, fewer)) == promise:
                steps = fewer
            else:
                start += size
        size //= 2
    return steps


def _promise(found: list[str]) -> str:
    return found[0].split()[0] if found else ""


def check(seeds: Iterator[int] | Sequence[int], *, shortens: bool = True, reloads: bool = False) -> int:
    """Run each seed, print what failed, and return how many did."""
    failed = 0
    for seed in seeds:
        steps = with_reloads(seed) if reloads else draw(seed)
        found = failure(seed, steps)
        if not found:
            continue
        failed += 1
        print(f"seed {seed}: {len(found)} promises broken")
        for each in found[:5]:
            print(f"  {each}")
        print(f"  replay: {command(seed)}{' --reloads' if reloads else ''}")
        if shortens:
            for step in shortened(seed, steps):
                print(f"    {json.dumps(step.to_json())}")
        sys.stdout.flush()
    return failed


def command(seed: int) -> str:
    """How to repeat one seed alone."""
    return f"PYTHONHASHSEED=0 .venv/bin/python -m tests.faults.sequences --seed {seed}"


def main() -> int:
    """Run the seeds that the command line asks for; 1 if a promise was broken."""
    arguments = _arguments()
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets is part of what happens, and must be the same when a seed is repeated.
        return _again()
    logging.basicConfig(level=logging.DEBUG if arguments.verbose else logging.CRITICAL)
    started = time.process_time()
    count = 1 if arguments.seed is not None else arguments.count
    first = arguments.first if arguments.seed is None else arguments.seed
    with distributions_searched_once():
        failed = check(range(first, first + count), shortens=not arguments.verbose, reloads=arguments.reloads)
    seconds = time.process_time() - started
    print(f"{count - failed} of {count} sequences kept every promise, {seconds / count:.2f} s of CPU each")
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=1000, help="how many sequences")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seed", type=int, help="this one alone")
    parser.add_argument("--reloads", action="store_true", help="with changes of the configuration in between")
    parser.add_argument("--verbose", action="store_true", help="with the scheduler's log")
    return parser.parse_args()


def _again() -> int:
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    return subprocess.run(
        [sys.executable, "-m", "tests.faults.sequences", *sys.argv[1:]], cwd=root, env=environment, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
