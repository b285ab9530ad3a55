"""Rules that hold for the repository as a whole."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
LONGEST_MODULE = 350
FOLDERS = ("docs", "manifests", "tests", "operator", "e2e", "examples", ".github")
OWN_PACKAGES = {"bayplan", "tests", "e2e"}
# Documented by Python in spite of their names, and each used in one place (ADR 17; server/debug.py).
DOCUMENTED = {"os._exit", "sys._current_frames"}


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the repository, parsed, by its path from the root."""
    paths = [path for folder in ("operator", "tests", "e2e") for path in (ROOT / folder).rglob("*.py")]
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in sorted(paths)}


def test_operator_is_a_source_root_and_not_a_package():
    assert (ROOT / "operator" / "bayplan" / "__init__.py").is_file()
    assert not (ROOT / "operator" / "__init__.py").exists()


@pytest.mark.parametrize("code", ["import collections", "import operator; operator.itemgetter(0)"])
def test_the_standard_library_works_from_the_root_of_the_repository(code):
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_pin_is_exact_and_every_range_has_its_pin_in_it():
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if line[0] != "#")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    asked = [
        *project["project"]["dependencies"],
        *(line for extra in project["project"]["optional-dependencies"].values() for line in extra),
        *(line for group in project["dependency-groups"].values() for line in group),
    ]
    ranges = {each.name.lower(): each.specifier for each in map(Requirement, asked)}
    assert len(pins) > 40
    assert {name: str(allowed) for name, allowed in ranges.items() if pins.get(name, "") not in allowed} == {}


def test_hosted_checks_run_the_targets_of_the_local_ones_and_nothing_else():
    targets = dict(re.findall(r"^([a-z0-9]+):(.*?)(?: ##|$)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    local = set(re.findall(r"^step (\w+)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE))
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    hosted = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert {command.partition(" ")[0] for command in hosted} == {"make"}
    assert {command.partition(" ")[2] for command in hosted} == (local - {"test"}) | set(targets["test"].split())


@pytest.mark.parametrize("workflow", ["ci", "soak"])
def test_hosted_checks_name_actions_by_commit(workflow: str):
    text = (ROOT / ".github" / "workflows" / f"{workflow}.yml").read_text()
    used = re.findall(r"uses: (.+)", text)
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[0-9.]+", each)] == []


def test_what_the_virtual_environment_is_made_of_has_the_pinned_versions_and_hashes():
    text = (ROOT / "development-requirements.txt").read_text()
    pins = set(re.findall(r"^\S+==\S+$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    entries = re.split(r"^(?=\S)", text, flags=re.MULTILINE)[1:]
    # colorama is for Windows, which nothing is tested on.
    assert {each.split()[0] for each in entries if not each.startswith("colorama")} <= pins
    assert all("--hash=sha256:" in each for each in entries)
    assert "--require-hashes -r development-requirements.txt" in (ROOT / "Makefile").read_text()


def test_no_module_is_longer_than_one_can_read_at_once():
    lengths = {path: len((ROOT / path).read_text().splitlines()) for path in modules()}
    assert {path: length for path, length in lengths.items() if length > LONGEST_MODULE} == {}


def test_no_private_name_of_a_dependency_is_used():
    assert [f"{path}:{use}" for path, tree in modules().items() for use in private_uses(tree)] == []


def test_nothing_is_changed_behind_the_back_of_others():
    assert [f"{path}:{use}" for path, tree in modules().items() for use in tampering(tree)] == []


@pytest.mark.parametrize(
    "code",
    [
        "import kopf._core",
        "from aiohttp._http_parser import x",
        "from kopf import _cogs",
        "import kopf as k\nk.structs._bodies",
        "from aiohttp import web\nweb._x",
    ],
)
def test_a_private_name_of_a_dependency_is_found(code):
    assert list(private_uses(ast.parse(code))) != []


@pytest.mark.parametrize(
    "code", ["from bayplan.x import _y", "import kopf\nkopf.on", "self._x", "import numpy.__init__"]
)
def test_own_and_public_names_are_left_alone(code):
    assert list(private_uses(ast.parse(code))) == []


@pytest.mark.parametrize(
    "code",
    [
        "sys.modules['x'] = None",
        "del sys.modules['x']",
        "sys.modules: dict = {}",
        "loop.set_task_factory(f)",
        "response.content = x",
    ],
)
def test_tampering_is_found(code):
    assert list(tampering(ast.parse(code))) != []


def test_links_in_documents_lead_somewhere():
    documents = [*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md"))]
    assert len(documents) > 20
    assert [f"{each.relative_to(ROOT)}: {link}" for each in documents for link in broken_links(each)] == []


def broken_links(document: Path) -> Iterator[str]:
    """Links to what is no file (a folder is no page of the site), or to headings that their document does not have."""
    for link in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        if not target.is_file() or (anchor and anchor not in anchors_of(target.read_text())):
            yield link


def anchors_of(text: str) -> set[str]:
    """How GitHub names the headings of a document."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def private_uses(tree: ast.Module) -> Iterator[str]:
    """Imports of private names of other packages, and attributes of imported ones that are private."""
    foreign: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if is_foreign(alias.name)]
            foreign |= {alias.asname or alias.name.split(".")[0] for alias in node.names if is_foreign(alias.name)}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and is_foreign(node.module or ""):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            foreign |= {alias.asname or alias.name for alias in node.names}
        else:
            continue
        yield from (f"{node.lineno}: {name}" for name in names if any(map(is_private, name.split("."))))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and root_of(node) in foreign:
            used = ast.unparse(node)
            yield from () if used in DOCUMENTED else (f"{node.lineno}: {used}",)


def tampering(tree: ast.Module) -> Iterator[str]:
    """Writes to `sys.modules`, to the content of a response, or of a task factory."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            found = ast.unparse(node) in {"sys.modules", "response.content"}
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            found = ast.unparse(node.value) == "sys.modules"
        else:
            found = isinstance(node, ast.Attribute) and node.attr == "set_task_factory"
        if found:
            yield f"{node.lineno}: {ast.unparse(node)}"


def is_foreign(module: str) -> bool:
    return module.split(".", maxsplit=1)[0] not in OWN_PACKAGES


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def root_of(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
