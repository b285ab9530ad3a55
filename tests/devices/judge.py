"""kube-scheduler's own allocator on random cases, and bayplan's beside it.

`python -m tests.devices.judge --seed 2 --count 2000` compares on new cases; with `--record` it writes what unit tests
replay.
"""

import argparse
import lzma
import subprocess
import sys
from pathlib import Path

import msgspec
from e2e.controlplane.build import Programs, build, say_on_stderr
from tests.devices.device_builders import still
from tests.devices.random_cases import random_case

from bayplan.api.claim_objects import AllocationResult, ResourceClaim
from bayplan.api.device_objects import DeviceClass, ResourceSlice
from bayplan.api.objects import Node
from bayplan.api.quantity import exact_nano
from bayplan.devices.allocated_state import AllocatedState
from bayplan.devices.allocator import Allocator
from bayplan.devices.results import Refusal

DATA = Path(__file__).parent / "data" / "allocations.jsonl.xz"
_NAME = "device-allocator"
_PROGRAM = Programs("devices", f"./{_NAME}", (_NAME,), "1 to 3 minutes", sources=(f"{_NAME}/main.go",))
_SEEDS_APART = 1_000_000


def decode(document, kind):
    """A document as a wire struct."""
    return msgspec.convert(document, kind)


def allocator_of(case):
    """The allocator over what a case has."""
    state = AllocatedState()
    for number, allocation in enumerate(case["allocated"]):
        state.observe(str(number), decode(allocation, AllocationResult))
    classes = {each["metadata"]["name"]: decode(each, DeviceClass) for each in case["classes"]}
    return Allocator(decode(case["slices"], list[ResourceSlice]), classes, (), state)


def bayplan_answers(case, *, packs=False):
    """What bayplan says of a case, in the form in which answers are compared."""
    allocator = allocator_of(case)
    claims, node = decode(case["claims"], list[ResourceClaim]), decode(case["node"], Node)
    (answer,) = allocator.allocate(claims, [node], still, packs=packs)
    if isinstance(answer, Refusal):
        told = {"error": answer.text} if answer.fails else {"refusal": answer.text}
        return {"timedOut": True} if answer.timed_out else told
    return {"allocations": [_comparable(each) for each in answer.allocations(claims, node)]}


def comparable(answer):
    """An answer of the program in the form in which answers are compared."""
    if "allocations" not in answer:
        return answer
    return {"allocations": [_comparable(decode(each, AllocationResult)) for each in answer["allocations"]]}


def _comparable(allocation):
    """Amounts as numbers; that there is a share, not its random name."""
    plain = msgspec.to_builtins(allocation)
    for result in plain.get("devices", {}).get("results") or ():
        if "shareID" in result:
            result["shareID"] = True
        if "consumedCapacity" in result:
            result["consumedCapacity"] = {key: exact_nano(each) for key, each in result["consumedCapacity"].items()}
        if not result.get("tolerations", True):
            del result["tolerations"]
    return plain


def judged(cases):
    """The program's answer to each case."""
    program = build(say_on_stderr, _PROGRAM) / _NAME
    lines = b"".join(msgspec.json.encode(case) + b"\n" for case in cases)
    done = subprocess.run([program], input=lines, stdout=subprocess.PIPE, check=True)
    return [msgspec.json.decode(line) for line in done.stdout.splitlines()]


def main():
    """Compare, print what differs, and end with 1 if anything does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--record", action="store_true", help="write the cases for the unit tests")
    options = parser.parse_args()
    seeds = range(options.seed * _SEEDS_APART, options.seed * _SEEDS_APART + options.count)
    pairs = list(zip(seeds, judged([random_case(seed) for seed in seeds]), strict=True))
    pairs = [(seed, comparable(answer)) for seed, answer in pairs if "timedOut" not in answer]
    if options.record:
        DATA.parent.mkdir(exist_ok=True)
        lines = b"".join(msgspec.json.encode([random_case(seed), answer]) + b"\n" for seed, answer in pairs)
        DATA.write_bytes(lzma.compress(lines, preset=9 | lzma.PRESET_EXTREME))
    wrong = given_up = 0
    for seed, answer in pairs:
        ours = bayplan_answers(random_case(seed))
        given_up += "timedOut" in ours
        if ours != answer and "timedOut" not in ours:
            wrong += 1
            print(f"case {seed}: kube-scheduler {answer}\n  bayplan {ours}")
    kinds = [next(iter(answer)) for _, answer in pairs]
    told = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
    print(f"kube-scheduler answered {len(pairs)} of {options.count} cases in time: {told}")
    print(f"bayplan answered {wrong} otherwise, and gave {given_up} up")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
