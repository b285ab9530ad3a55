"""Asks Kubernetes' own evaluator about expressions by hand and random ones: `python -m tests.cel.record --seed 7`.

Without `--out` the differences to bayplan are printed, and the exit code says whether there are any.
"""

import argparse
import json
import random
import subprocess
import sys
from pathlib import Path

from e2e.controlplane.build import Programs, build, say_on_stderr
from tests.cel.expressions import BY_HAND, DEVICES, Grammar
from tests.cel.recording import DRIVER, Answered, expressions_by_hand, write_answers
from tests.cel.verdict import difference

_NAME = "device-selectors"
PROGRAM = Programs(
    "device-selectors", f"./{_NAME}", (_NAME,), "half a minute", sources=(f"{_NAME}/main.go",), kubernetes=False
)
# Upstream goes through maps in an order of the moment: what depends on it is asked several times, and left out.
_TIMES = 4


def questions(seed: int, count: int) -> list[tuple[str, dict[str, object]]]:
    """All expressions by hand for the first device and for one with all that they read, and `count` random ones."""
    dice = random.Random(seed)
    grammar = Grammar(dice)
    by_hand = [(each, device) for device in (DEVICES[0], BY_HAND) for each in expressions_by_hand()]
    return by_hand + [(grammar.selector(), dice.choice(DEVICES)) for _ in range(count)]


def answers(asked: list[tuple[str, dict[str, object]]]) -> list[Answered]:
    """What Kubernetes answers; what it answers differently from one time to the next is left out."""
    program = build(say_on_stderr, PROGRAM) / _NAME
    lines = [json.dumps({"expression": each, "driver": DRIVER, "device": device}) for each, device in asked]
    passes = []
    for _ in range(_TIMES):
        done = subprocess.run([program], input="\n".join(lines) + "\n", stdout=subprocess.PIPE, text=True, check=True)
        passes.append([json.loads(line) for line in done.stdout.splitlines()])
    found = []
    for (expression, device), *given in zip(asked, *passes, strict=True):
        costs = {each.pop("cost", None) for each in given}
        # Faults of upstream's own program are not followed.
        fault = "internal error: interface" in given[0].get("error", "")
        if not fault and all(each == given[0] for each in given):
            found.append(Answered(expression, device, given[0], min(costs, key=str)))
    return found


def main() -> int:
    """Records, or prints what bayplan answers otherwise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--out", type=Path, help="where to write the answers, instead of comparing them")
    given = parser.parse_args()
    found = answers(questions(given.seed, given.count))
    if given.out is not None:
        write_answers(given.out, found)
        return 0
    differences = [text for text in map(difference, found) if text]
    print("\n".join(differences))
    print(f"{len(found)} answers, {len(differences)} differ")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
