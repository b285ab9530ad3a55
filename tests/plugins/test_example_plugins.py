"""examples/plugins works as docs/plugins.md says, installed as a package is."""

import tomllib
from pathlib import Path

import pytest
from tests.builders import make_node, make_pod
from tests.plugins.distributions import install

from bayplan.cache.pod_info import PodInfo
from bayplan.cli.config import load_checked
from bayplan.config.errors import ConfigurationError
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.simulator import Simulator

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugins"


@pytest.fixture(autouse=True)
def installed(tmp_path, monkeypatch):
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    install(tmp_path, monkeypatch, name=project["name"], **project["entry-points"]["bayplan.plugins"])
    monkeypatch.syspath_prepend(str(EXAMPLE))


def placements(*pods):
    simulator = Simulator(load_checked(EXAMPLE / "scheduler.yaml"))
    nodes = [make_node(f"n{rack}", labels={"example.com/rack": rack}) for rack in ("3", "1", "none", "2")]
    simulator.add(ClusterObjects(nodes=nodes, pods=[PodInfo(pod) for pod in pods]))
    return {pod.name: (pod.attempts[-1].node, pod.attempts[-1].message) for pod in simulator.run().pods}


def test_pods_fill_racks_in_their_order():
    assert placements(make_pod("p", cpu="1"))["p"] == ("nnone", None)


def test_pods_of_one_owner_are_kept_apart_until_no_node_is_left():
    outcomes = placements(*(make_pod(f"p{n}", cpu="1", owner="ReplicaSet/web") for n in range(5)))
    assert [node for node, _ in outcomes.values()] == ["nnone", "n1", "n2", "n3", None]
    assert outcomes["p4"][1].startswith("0/4 nodes are available: 4 node(s) had too many pods of the same owner.")


def test_its_arguments_are_checked_at_the_start(tmp_path):
    file = tmp_path / "scheduler.yaml"
    file.write_text((EXAMPLE / "scheduler.yaml").read_text().replace("limit: 1", "limit: 0"))
    with pytest.raises(ConfigurationError, match="the factory failed: ValueError: limit must be at least 1"):
        load_checked(file)
