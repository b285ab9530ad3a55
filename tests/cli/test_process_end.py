"""How a process ends whose log nobody reads."""

import os
import subprocess
import sys

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
