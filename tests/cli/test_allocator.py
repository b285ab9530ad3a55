"""What the C library's allocator holds after large objects came and went among small ones that stay."""

import platform
import subprocess
import sys

import pytest

_SCENE = """
import ctypes, sys
from bayplan.cli.allocator import return_large_blocks

if "fixed" in sys.argv:
    assert return_large_blocks()

fields = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")

class Mallinfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in fields]

mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = Mallinfo2

bytes(30 << 20)  # A large block is freed once, and the thresholds follow it.
stays = []
for _ in range(20):
    bodies = []
    for size in range(200):
        bodies.append(bytes(100_000 + 1000 * size))
        stays.append(bytes(1000))
    del bodies
print(mallinfo2().fordblks)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the settings are glibc's")
def test_the_heap_of_a_scheduler_holds_no_large_blocks_that_were_freed() -> None:
    left_alone, fixed = (_free_bytes(argument) for argument in ("as-it-is", "fixed"))
    assert left_alone > 20 << 20
    assert fixed < 1 << 20


def _free_bytes(argument: str) -> int:
    command = [sys.executable, "-c", _SCENE, argument]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
