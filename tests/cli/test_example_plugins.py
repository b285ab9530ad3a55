"""The example of docs/plugins.md in a process of its own, with the package installed beside bayplan as files."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "plugins"


@pytest.fixture
def site(tmp_path):
    """A directory that holds what installing the package leaves there."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())
    (package,) = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    shutil.copytree(EXAMPLE / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    info = tmp_path / "bayplan_example_plugins-0.1.0.dist-info"
    info.mkdir()
    name, version = project["project"]["name"], project["project"]["version"]
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (group,) = project["project"]["entry-points"]
    lines = [f"{plugin} = {value}" for plugin, value in project["project"]["entry-points"][group].items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))
    return tmp_path


def bayplan(*arguments, site=None):
    path = os.pathsep.join(filter(None, [str(ROOT / "operator"), site and str(site)]))
    return subprocess.run(
        [sys.executable, "-m", "bayplan", *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_simulate_places_pods_by_the_installed_example(site, tmp_path):
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{rack}", "labels": {"example.com/rack": rack}},
            "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10"}},
        }
        for rack in ("3", "1")
    ]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{index}", "ownerReferences": [owner]},
            "spec": {"schedulerName": "bayplan", "containers": [{"name": "c", "image": "pause"}]},
        }
        for index in range(3)
    ]
    cluster = tmp_path / "cluster.json"
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes, *pods]}))
    config = str(EXAMPLE / "scheduler.yaml")
    done = bayplan("simulate", "--config", config, "--cluster", str(cluster), "--explain", "-o", "json", site=site)
    assert (done.returncode, done.stderr) == (0, "")
    first, second, third = (pod["attempts"][-1] for pod in json.loads(done.stdout)["pods"])
    assert [first["node"], second["node"], third["node"]] == ["n1", "n3", None]
    assert "2 node(s) had too many pods of the same owner" in third["message"]
    assert {name: verdict["scores"]["RackOrder"] for name, verdict in first["nodes"].items()} == {"n1": 5 * 67, "n3": 0}


def test_check_says_what_is_missing_where_the_example_is_not_installed():
    done = bayplan("config", "check", str(EXAMPLE / "scheduler.yaml"))
    assert done.returncode == 2
    assert "MaxPodsPerOwner" in done.stderr
    assert "Traceback" not in done.stderr
