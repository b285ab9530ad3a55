"""docs/glossary.md names things that exist where it says."""

import re
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

GLOSSARY = Path(__file__).parents[1] / "docs" / "glossary.md"


def entries() -> list[tuple[str, str]]:
    """The module and a dotted name in it, for every name of ours."""
    rows = [line.strip("|").split("|") for line in GLOSSARY.read_text().splitlines() if "`bayplan." in line]
    return [(row[2].strip(" `"), name) for row in rows for name in re.findall(r"`([^`]+)`", row[1])]


def test_the_glossary_names_something_of_every_layer_of_the_engine():
    layers = {module.split(".")[1] for module, _ in entries()}
    assert layers >= {"controller", "scheduler", "plugins", "queue", "evaluation", "framework", "cache", "api"}


@pytest.mark.parametrize(("module", "name"), entries())
def test_every_name_of_ours_is_in_its_module(module, name):
    reduce(getattr, name.split("."), import_module(module))


def test_every_row_names_something_of_ours():
    rows = [line for line in GLOSSARY.read_text().splitlines() if re.match(r"\| [^k-]", line)]
    assert [row for row in rows if not re.fullmatch(r"\|[^|]*\| `[^|]+` \| `bayplan\.[\w.]+` \|[^|]+\|", row)] == []
