"""docs/faults.md has a row for each fault and each invariant, and the pages on reliability name tests that exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE, FAULTS, HOSTILE_INPUTS = (
    (ROOT / "docs" / name).read_text() for name in ("reliability.md", "faults.md", "hostile-inputs.md")
)
TESTS = re.findall(r"`([^`]+\.py)::([^`]+)`", PAGE + FAULTS + HOSTILE_INPUTS)


def rows(letter: str) -> dict[str, str]:
    """The rows of a table by their number."""
    found = [re.match(rf"\| ({letter}\d+) \|(.*)", line) for line in FAULTS.splitlines()]
    return {match[1]: match[2] for match in found if match is not None}


@cache
def functions_of(path: str) -> set[str]:
    """The names of the test functions of a file, read without running it."""
    tree = ast.parse((ROOT / path).read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in tree.body if isinstance(node, functions) and node.name.startswith("test_")}


@pytest.mark.parametrize(("letter", "count"), [("F", 34), ("P", 26)])
def test_every_fault_and_every_invariant_has_a_row_in_order(letter, count):
    assert list(rows(letter)) == [f"{letter}{number}" for number in range(1, count + 1)]


@pytest.mark.parametrize("letter", ["F", "P"])
def test_every_row_names_a_test(letter):
    assert [number for number, row in rows(letter).items() if ".py::test_" not in row] == []


def test_every_test_named_exists():
    assert len(TESTS) > 100
    missing = {(path, name) for path, name in TESTS if not (ROOT / path).exists() or name not in functions_of(path)}
    assert sorted(missing) == []


def test_the_faults_of_the_sequences_are_those_the_page_speaks_of():
    source = (ROOT / "tests" / "faults" / "steps.py").read_text()
    assert re.search(r'STATUSES = \(("\d+", )*"\d+"\)', source)
    for status in ("409", *re.findall(r'"(\d{3})"', source.split("STATUSES = ")[1].splitlines()[0])):
        assert status in PAGE
