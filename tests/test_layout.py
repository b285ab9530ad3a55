import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def test_operator_is_a_source_root_and_not_a_package():
    assert (ROOT / "operator" / "bayplan" / "__init__.py").is_file()
    assert not (ROOT / "operator" / "__init__.py").exists()


@pytest.mark.parametrize("code", ["import collections", "import operator; operator.itemgetter(0)"])
def test_the_standard_library_works_from_the_root_of_the_repository(code):
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_pin_is_exact_and_is_what_the_tests_run_with():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line.split("==") for line in lines if not line.startswith("#")]
    assert len(pins) > 40
    assert all(len(pin) == 2 for pin in pins)
    assert {name: version(name) for name, _ in pins} == dict(pins)
