import ast
import re
from pathlib import Path

DOCUMENT = Path(__file__).parents[1] / "docs/architecture.md"
LINK = re.compile(r"\[`([\w.]+)`\]\((\S+\.py)\)")


def names_defined_in(file: Path) -> set[str]:
    """Classes, functions, and methods as `Class.method`."""
    names = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
            names |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.AsyncFunctionDef)}
    return names


def test_every_function_that_the_architecture_links_to_is_in_the_linked_file():
    links = LINK.findall(DOCUMENT.read_text())
    assert len(links) > 10
    missing = [(name, path) for name, path in links if name not in names_defined_in(DOCUMENT.parent / path)]
    assert missing == []
