"""tests/seeds/README.md maps documented behaviours to tests that exist, and names every test written for them."""

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ["Pod priority and preemption", "Bin packing by a Policy", "Bin packing by strategies"]


@dataclass(frozen=True)
class Row:
    number: int
    section: str
    behaviour: str
    shown_by: str

    @property
    def tests(self) -> list[str]:
        return re.findall(r"`([^`]+\.py::[^`]+)`", self.shown_by)


@cache
def pages() -> dict[str, list[Row]]:
    """The rows of each table, by heading."""
    found: dict[str, list[Row]] = {}
    for page in (ROOT / "tests/seeds/README.md").read_text().split("\n## ")[1:]:
        heading, _, text = page.partition("\n")
        cells = [line.strip("| ").split(" | ") for line in text.splitlines() if re.match(r"\| \d+ \|", line)]
        found[heading] = [Row(int(number), *others) for number, *others in cells]
    return found


def rows() -> list[Row]:
    return [row for page in pages().values() for row in page]


@cache
def functions_of(path: str) -> set[str]:
    """The names of the test functions of a file, read without running it."""
    tree = ast.parse((ROOT / path).read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in tree.body if isinstance(node, functions) and node.name.startswith("test_")}


def test_the_pages_are_the_three_that_are_mapped():
    assert list(pages()) == PAGES


@pytest.mark.parametrize("page", PAGES)
def test_behaviours_are_numbered_and_in_the_order_of_the_sections(page):
    assert [row.number for row in pages()[page]] == list(range(1, len(pages()[page]) + 1))
    sections = [row.section.split()[0].split(".") for row in pages()[page]]
    assert sections == sorted(sections)


def test_every_behaviour_names_a_test():
    assert [row for row in rows() if not row.tests or not row.behaviour] == []


def test_every_test_named_exists():
    named = {tuple(test.split("::")) for row in rows() for test in row.tests}
    assert [
        f"{path}::{name}"
        for path, name in sorted(named)
        if not (ROOT / path).exists() or name not in functions_of(path)
    ] == []


def test_every_test_written_for_a_page_is_named():
    written_for_pages = [
        *(ROOT / "tests" / "seeds").glob("test_*.py"),
        ROOT / "e2e/scenarios/test_documented_priority.py",
    ]
    paths = {str(path.relative_to(ROOT)) for path in written_for_pages}
    named = {test for row in rows() for test in row.tests}
    assert {f"{path}::{name}" for path in paths for name in functions_of(path)} - named == set()
