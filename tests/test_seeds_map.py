"""docs/seeds.md holds every sentence of the documentation it maps, and names tests that exist."""

import ast
import re
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NO_BEHAVIOUR = "No behaviour: "

# The words of each page: lower case, letters and digits alone, without markup, front matter and link targets.
PAGES = {
    "Pod priority and preemption": "52d4ea94167a95899bdff82cb122f26a3fd5df6a7ee299d3e0d530a05310d307",
    "Bin packing by a Policy (kube-scheduler 1.16)": "7cc707e6dfcf2f63d4195b4f20f7b67f5c514183c3830eae78458ba5c123b488",
    "Bin packing by strategies (today's page)": "eea109b81e6054821c7d7ec1769b3cd35acbe778964e7d6fe50406d86556ff45",
}


@dataclass(frozen=True)
class Row:
    number: int
    sentence: str
    shown: str

    @property
    def tests(self) -> list[str]:
        return re.findall(r"`([^`]+\.py::[^`]+)`", self.shown)


@cache
def pages() -> dict[str, list[Row]]:
    """The rows of each table, by heading."""
    found: dict[str, list[Row]] = {}
    for section in (ROOT / "docs" / "seeds.md").read_text().split("\n## ")[1:]:
        heading, _, text = section.partition("\n")
        cells = [line.strip("| ").split(" | ") for line in text.splitlines() if re.match(r"\| \d+ \|", line)]
        found[heading] = [Row(int(number), sentence, others[-1]) for number, sentence, *others in cells]
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
    assert pages().keys() == PAGES.keys()


@pytest.mark.parametrize("page", PAGES)
def test_no_sentence_of_the_page_is_left_out_changed_or_out_of_order(page):
    words = "".join(re.findall(r"[^\W_]+", " ".join(row.sentence for row in pages()[page]).casefold()))
    assert sha256(words.encode()).hexdigest() == PAGES[page]
    assert [row.number for row in pages()[page]] == list(range(1, len(pages()[page]) + 1))


def test_every_sentence_names_a_test_or_says_why_it_states_no_behaviour():
    assert [row for row in rows() if not row.tests and not row.shown.startswith(NO_BEHAVIOUR)] == []
    assert [row for row in rows() if row.shown.removeprefix(NO_BEHAVIOUR).strip() == ""] == []


def test_every_test_named_exists():
    named = {tuple(test.split("::")) for row in rows() for test in row.tests}
    assert [f"{path}::{name}" for path, name in sorted(named) if name not in functions_of(path)] == []


def test_every_test_written_for_a_sentence_is_named():
    written_for_sentences = [
        *(ROOT / "tests" / "seeds").glob("test_*.py"),
        ROOT / "e2e/scenarios/test_documented_priority.py",
    ]
    paths = {str(path.relative_to(ROOT)) for path in written_for_sentences}
    named = {test for row in rows() for test in row.tests}
    assert {f"{path}::{name}" for path in paths for name in functions_of(path)} - named == set()
