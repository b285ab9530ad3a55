"""What is shipped packs the pods of a Deployment, too: docs/adr/0023-what-packs-does-not-spread.md."""

import json
from pathlib import Path

import pytest

from bayplan.cli import main

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "manifests"
SHIPPED = sorted(
    path.relative_to(ROOT).as_posix() for path in MANIFESTS.rglob("config.yaml") if "chart" not in path.parts
)


def node(number):
    labels = {"kubernetes.io/hostname": f"n{number}", "topology.kubernetes.io/zone": "abc"[number % 3]}
    room = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return {"kind": "Node", "metadata": {"name": f"n{number}", "labels": labels}, "status": {"allocatable": room}}


def pod(number):
    container = {"name": "c", "image": "web", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
    metadata = {"name": f"web-{number}", "labels": {"app": "web"}}
    return {"kind": "Pod", "metadata": metadata, "spec": {"schedulerName": "bayplan", "containers": [container]}}


def cluster():
    """Fifty nodes in three zones, and a Service with forty pods that fill five nodes."""
    service = {"kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}}}
    objects = [*map(node, range(50)), service, *map(pod, range(40))]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", **each} for each in objects]})


def simulated(folder, capsys, config):
    (folder / "cluster.json").write_text(cluster())
    chosen = () if config is None else ("--config", str(config))
    with pytest.raises(SystemExit):
        main(["simulate", *chosen, "--cluster", str(folder / "cluster.json")])
    return capsys.readouterr().out


@pytest.mark.parametrize("config", [None, *SHIPPED])
def test_pods_of_a_service_go_to_as_few_nodes_as_they_need(tmp_path, capsys, config):
    printed = simulated(tmp_path, capsys, config and ROOT / config)
    assert "Nodes: 5 of 50 in use; no packing needs fewer than 5\n" in printed


@pytest.mark.parametrize("config", SHIPPED)
def test_with_default_spreading_each_has_a_node_of_its_own(tmp_path, capsys, config):
    text = (ROOT / config).read_text()
    assert text.count("defaultingType: List") == 1, "what the component and the chart look for"
    (tmp_path / "config.yaml").write_text(text.replace("defaultingType: List", "defaultingType: System"))
    assert "Nodes: 40 of 50 in use" in simulated(tmp_path, capsys, tmp_path / "config.yaml")


def test_a_file_that_says_nothing_of_spreading_spreads_as_with_kube_scheduler(tmp_path, capsys):
    fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "bayplan", "pluginConfig": [fit]}],
    }
    (tmp_path / "config.json").write_text(json.dumps(document))
    assert "Nodes: 40 of 50 in use" in simulated(tmp_path, capsys, tmp_path / "config.json")


def test_there_is_a_configuration_for_each_way_to_preempt():
    assert len(SHIPPED) == 3
