"""What a process holds after large objects came and went, and how one ends whose log nobody reads."""

import os
import platform
import subprocess
import sys

import pytest

_MEMORY_SCENE = """
import ctypes, sys
from bayplan.cli.process import return_large_blocks

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
    command = [sys.executable, "-c", _MEMORY_SCENE, argument]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


_END_SCENE = """
import logging
from bayplan.cli.process import end_process
from bayplan.logs.formats import LoggingFormat
from bayplan.logs.line_writer import set_up_logging, write_aside

set_up_logging(LoggingFormat.TEXT, 0)
write_aside()
for number in range(100):
    logging.getLogger(f"bayplan.{number}").warning("x" * 10_000)
end_process(3)
"""


def test_it_ends_although_who_reads_its_log_stands_still():
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen([sys.executable, "-c", _END_SCENE], stderr=subprocess.PIPE, env=environment) as process:
        # The pipe holds 64 KiB, and nobody reads it.
        assert process.wait(timeout=60) == 3


@pytest.mark.parametrize(
    ("arguments", "code", "taken_apart"),
    [
        (["explain", "x", "--server", "http://127.0.0.1:1"], 1, False),
        (["config", "show"], 0, True),
    ],
)
def test_what_asked_by_http_ends_without_taking_the_interpreter_apart(arguments, code, taken_apart):
    script = (
        "import atexit, sys; from bayplan.__main__ import main; "
        f"atexit.register(print, 'taken apart'); sys.argv[1:] = {arguments}; main()"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ended.returncode == code
    assert ("taken apart" in ended.stdout) is taken_apart
