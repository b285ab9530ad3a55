"""The site of the documents has a place for every page, and what it is built with is pinned by hash."""

import re
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]


def pages_of(entry: object) -> list[str]:
    """The pages of a part of the navigation, in their order."""
    match entry:
        case str():
            return [entry]
        case dict():
            return [page for part in entry.values() for page in pages_of(part)]
        case list():
            return [page for part in entry for page in pages_of(part)]
    raise AssertionError(entry)


def test_every_document_has_one_place_in_the_reading_order():
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    documents = [path for path in listed.stdout.split() if not path.startswith(".github/")]
    assert len(documents) > 70
    assert sorted(pages_of(PROJECT["nav"])) == sorted(documents)


def test_it_begins_with_the_readme_and_is_read_from_trying_to_contributing():
    assert [name for part in PROJECT["nav"] for name in part] == ["Try", "Adopt", "Operate", "Understand", "Contribute"]
    assert pages_of(PROJECT["nav"])[0] == "README.md"


def test_what_builds_it_has_the_pinned_versions_and_hashes():
    pins = set(re.findall(r"^\S+==\S+$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    entries = re.split(r"^(?=\S)", (ROOT / "docs/requirements.txt").read_text(), flags=re.MULTILINE)[1:]
    assert {each.split()[0] for each in entries} <= pins
    assert all("--hash=sha256:" in each for each in entries)
    assert "--with-requirements docs/requirements.txt" in (ROOT / "Makefile").read_text()
