"""A configuration that changes in the middle of random sequences of faults breaks no promise."""

import os
import subprocess
import sys
from pathlib import Path

from tests.faults.sequences import with_reloads

ROOT = Path(__file__).resolve().parents[2]
COUNT = 50


def test_sequences_of_faults_and_reloads_keep_every_promise():
    # In a process of its own, where the order of sets is the same each time.
    asked = [sys.executable, "-m", "tests.faults.sequences", "--reloads", "--count", str(COUNT)]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(asked, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{COUNT} of {COUNT} sequences kept every promise" in done.stdout


def test_each_sequence_has_changes_of_both_kinds():
    steps = [step.given for step in with_reloads(1) if step.what == "reconfigure"]
    assert {"spreads": True} in steps
    assert {"spreads": False} in steps
