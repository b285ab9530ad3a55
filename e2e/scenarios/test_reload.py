"""A configuration changed under load, as the kubelet changes a mounted ConfigMap: nothing is lost or bound twice."""

import json
import os
import signal
from pathlib import Path

import pytest
from e2e.conftest import RunBayplan
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.objects import node, pod
from e2e.controlplane.recorder import PodRecorder
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.outcomes import (
    assert_alive_without_a_traceback,
    assert_each_bound_once,
    configuration,
    node_of,
    overcommitted,
    profile,
    wait_bound,
    wait_event,
    wait_metric,
    wait_refused,
)

pytestmark = pytest.mark.controlplane

NODES = 20
BEFORE, UNDER_LOAD, LATER = 40, 160, 15
REQUESTS = {"cpu": "100m", "memory": "128Mi"}
TAKEN_OVER, REFUSED = "configuration taken over", "configuration refused"


class Volume:
    """A mounted ConfigMap: the file is behind a link that is swapped."""

    def __init__(self, folder: Path, document: Object) -> None:
        self.folder = folder
        self.path = folder / "config.yaml"
        self._count = 0
        self.put(document)
        self.path.symlink_to("..data/config.yaml")

    def put(self, document: Object) -> None:
        self._count += 1
        name = f"..{self._count}"
        (self.folder / name).mkdir()
        (self.folder / name / "config.yaml").write_text(json.dumps(document))
        (self.folder / "..data_tmp").symlink_to(name)
        (self.folder / "..data_tmp").rename(self.folder / "..data")


def strategy(kind: str, **more: object) -> Object:
    args = {"scoringStrategy": {"type": kind}}
    fit = profile(pluginConfig=[{"name": "NodeResourcesFit", "args": args}])
    return {**configuration(fit), **more}


def put_pods(client: ApiClient, namespace: str, prefix: str, count: int) -> dict[str, str]:
    """Creates pods and returns their UIDs by name."""
    created = client.create_all("pods", (pod(f"{prefix}{n:03}", namespace, requests=REQUESTS) for n in range(count)))
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in created}


def test_a_strategy_changed_under_load_loses_nothing_and_later_pods_are_packed(
    client: ApiClient, namespace: str, run_bayplan: RunBayplan, tmp_path: Path
) -> None:
    # Twenty pods fill a node, by cpu and memory alike.
    client.create_all("nodes", [node(f"n{index:02}", cpu="2", memory="2560Mi") for index in range(NODES)])
    volume = Volume(tmp_path, strategy("LeastAllocated"))
    with PodRecorder(client) as recorder:
        process = run_bayplan(volume.path)
        uids = put_pods(client, namespace, "before", BEFORE)
        assert len(set(wait_bound(client, namespace, uids).values())) == NODES, "spread"
        uids["huge"] = client.create("pods", pod("huge", namespace, requests={"cpu": "3"}))["metadata"]["uid"]
        wait_refused(client, namespace, "huge")

        volume.put(strategy("MostAllocated"))
        under_load = put_pods(client, namespace, "under-load", UNDER_LOAD)
        wait_until(lambda: TAKEN_OVER in process.log(), TAKEN_OVER)
        wait_bound(client, namespace, under_load)

        later = put_pods(client, namespace, "later", LATER)
        assert len(set(wait_bound(client, namespace, later).values())) <= 3, "packed"
        assert node_of(client, namespace, "huge") == ""
        client.create("nodes", node("big", cpu="8", memory="8Gi"))
        wait_bound(client, namespace, ["huge"])
        recorder.catch_up()
        assert_each_bound_once(recorder, [*uids.values(), *under_load.values(), *later.values()])
    assert overcommitted(client) == {}
    wait_metric(process, 1.0, "bayplan_config_reloads_total", result="success")
    assert_alive_without_a_traceback(process)


def test_a_bad_file_is_refused_and_told_on_the_schedulers_own_pod(
    client: ApiClient, namespace: str, run_bayplan: RunBayplan, tmp_path: Path
) -> None:
    client.create_all("nodes", [node("a"), node("b")])
    volume = Volume(tmp_path, strategy("LeastAllocated"))
    environment = {"POD_NAME": "scheduler-0", "POD_NAMESPACE": namespace, "POD_UID": "u-0"}
    process = run_bayplan(volume.path, environment=environment)
    volume.put(strategy("Tightest"))
    wait_until(lambda: REFUSED in process.log(), REFUSED)
    wait_metric(process, 0.0, "bayplan_config_last_reload_successful")
    event = wait_event(client, namespace, "scheduler-0", "ConfigurationRefused")
    assert 'scoringStrategy.type: Unsupported value: "Tightest"' in event["note"]
    pods = put_pods(client, namespace, "p", 2)
    assert set(wait_bound(client, namespace, pods).values()) == {"a", "b"}, "spread as before"

    volume.put(strategy("MostAllocated"))
    os.kill(process.pid, signal.SIGHUP)
    wait_until(lambda: TAKEN_OVER in process.log(), TAKEN_OVER)
    wait_metric(process, 1.0, "bayplan_config_last_reload_successful")
    assert_alive_without_a_traceback(process)
