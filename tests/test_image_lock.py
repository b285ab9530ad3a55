"""What the image is made of is locked: every package by version and hash, and by no place to get it from."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCKS = ("requirements.txt", "build-requirements.txt")
PINS = dict(
    line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")
)


def locked(name: str) -> dict[str, str]:
    """The versions in a lock file by package."""
    return dict(re.findall(r"^(\S+)==(\S+) \\$", (ROOT / "image" / name).read_text(), re.MULTILINE))


@pytest.mark.parametrize("name", LOCKS)
def test_every_package_has_the_version_that_everything_is_tested_with_and_hashes(name):
    packages = locked(name)
    assert packages.items() <= PINS.items()
    text = (ROOT / "image" / name).read_text()
    entries = re.split(r"^(?=\S)", text, flags=re.MULTILINE)[1:]
    assert len(entries) == len(packages)
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in entries)


@pytest.mark.parametrize("name", LOCKS)
def test_no_lock_file_says_where_packages_come_from(name):
    assert not re.search(r"https?://|--index|--find-links", (ROOT / "image" / name).read_text())


def test_all_that_the_package_needs_at_run_time_is_locked_and_nothing_that_only_tests_need():
    needed = {Requirement(each).name for each in PROJECT["project"]["dependencies"]}
    assert needed <= locked("requirements.txt").keys()
    assert locked("requirements.txt").keys().isdisjoint({"pytest", "hypothesis", "ruff", "mypy", "uv", "hatchling"})


def test_what_builds_the_package_in_the_image_is_what_builds_it_elsewhere():
    assert PROJECT["dependency-groups"]["build"] == PROJECT["build-system"]["requires"]
    assert {Requirement(each).name for each in PROJECT["build-system"]["requires"]} <= locked(LOCKS[1]).keys()
