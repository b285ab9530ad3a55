"""How a process ends whose log nobody reads."""

import os
import subprocess
import sys

import pytest

_SCENE = """
import logging
from bayplan.cli.process_end import end_process
from bayplan.logs.formats import LoggingFormat
from bayplan.logs.setup import set_up_logging, write_aside

set_up_logging(LoggingFormat.TEXT, 0)
write_aside()
for number in range(100):
    logging.getLogger(f"bayplan.{number}").warning("x" * 10_000)
end_process(3)
"""


def test_it_ends_although_who_reads_its_log_stands_still():
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen([sys.executable, "-c", _SCENE], stderr=subprocess.PIPE, env=environment) as process:
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
