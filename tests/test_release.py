"""What a release is made of: the wheel that pipx and uv install, and a workflow that makes it."""

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
STATIC = ROOT / "operator" / "bayplan" / "web" / "static"


def run(*command: str | Path, cwd: Path) -> str:
    """Returns what a command that must succeed prints."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """The folder of what is built: the source distribution, and the wheel that is built of that alone."""
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, cwd=ROOT)
    (packed,) = folder.glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(source, filter="data")
    (unpacked,) = source.iterdir()
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=unpacked)
    return folder


def test_the_wheel_has_the_whole_package_with_its_page_and_nothing_else(dist):
    (wheel,) = dist.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    page = {f"bayplan/web/static/{path.relative_to(STATIC)}" for path in STATIC.rglob("*") if path.is_file()}
    assert page
    assert page <= names
    assert {name.split("/")[0] for name in names} == {"bayplan", "bayplan-0.1.0.dist-info"}
    assert {"bayplan/py.typed", "bayplan/__main__.py"} <= names


def test_the_installed_wheel_is_the_command(dist, tmp_path):
    # Its dependencies are those of this environment; all that is of the project comes from the wheel.
    (wheel,) = dist.glob("*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site_packages = tmp_path / "venv" / "lib" / version / "site-packages"
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        wheel,
        cwd=tmp_path,
    )
    others = Path(yaml.__file__).resolve().parent.parent
    (site_packages / "dependencies.pth").write_text(f"{others}\n")
    bayplan = tmp_path / "venv" / "bin" / "bayplan"
    where = run(python, "-c", "import bayplan; print(bayplan.__file__)", cwd=tmp_path)
    assert where.startswith(str(site_packages))
    assert "0.1.0" in run(bayplan, "--version", cwd=tmp_path)
    assert "nodes in use" in run(bayplan, "demo", "--no-live", cwd=tmp_path)
    assert '"$schema"' in run(bayplan, "config", "schema", cwd=tmp_path)


def test_the_release_workflow_runs_targets_that_exist_and_no_action_of_others():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert all(step.keys() == {"run"} for step in steps)
    targets = set(re.findall(r"^([a-z0-9]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    used = [found[1] for step in steps if (found := re.match(r"make (\w+)", step["run"]))]
    assert used == ["wheel", "sbom", "image"]
    assert set(used) <= targets
    chart = yaml.safe_load((ROOT / "manifests" / "chart" / "Chart.yaml").read_text())
    assert f'version = "{chart["version"]}"' in (ROOT / "pyproject.toml").read_text()
