"""A changed configuration file under a running scheduler: taken over whole, or refused with a word about the field."""

import asyncio
import json
import os
import re
import signal
import time

import pytest
from tests.controller.kubernetes_api import PODS, pod
from tests.faults.certificates import Authority
from tests.scheduler.extender.extender_server import ExtenderServer, keep

from bayplan.cli.config import load_checked
from bayplan.config.document import WatchedFile
from bayplan.controller.reload import ConfigurationSource, own_pod

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
OWN = {"POD_NAME": "bayplan-1", "POD_NAMESPACE": "kube-system", "POD_UID": "u1"}


def strategy(kind, more=""):
    return (
        f"{HEAD}{more}profiles:\n- schedulerName: bayplan\n  pluginConfig:\n  - name: NodeResourcesFit\n"
        f"    args:\n      scoringStrategy:\n        type: {kind}\n"
    )


SPREAD, PACK = strategy("LeastAllocated"), strategy("MostAllocated")


class Volume:
    """A mounted ConfigMap: the file is behind a link that the kubelet swaps."""

    def __init__(self, folder, text):
        self.folder, self.count = folder, 0
        self.path = folder / "config.yaml"
        self.put(text)
        self.path.symlink_to("..data/config.yaml")

    def put(self, text):
        self.count += 1
        name = f"..{self.count}"
        (self.folder / name).mkdir()
        (self.folder / name / "config.yaml").write_text(text)
        (self.folder / "..data_tmp").symlink_to(name)
        (self.folder / "..data_tmp").rename(self.folder / "..data")


@pytest.fixture
async def volume(cluster, tmp_path):
    """A scheduler of two nodes that spreads, as its mounted file says."""
    made = Volume(tmp_path, SPREAD)
    source = ConfigurationSource(WatchedFile(made.path), lambda: load_checked(made.path), own_pod(OWN))
    cluster.start("n1", "n2", configuration=source.load(), source=source)
    await cluster.until_ready()
    return made


async def metrics(cluster):
    _, text = await cluster.get("/metrics")
    found = dict(re.findall(r"^bayplan_config_(\S+) (\S+)$", text, re.MULTILINE))
    return {name: float(value) for name, value in found.items()}


async def until_counted(cluster, **counts):
    """Metrics are worked out once a second at most: wait until they say so."""
    expected = {f'reloads_total{{result="{result}"}}': float(count) for result, count in counts.items()}
    async with asyncio.timeout(30):
        while expected.items() - (await metrics(cluster)).items():  # noqa: ASYNC110  asked over HTTP
            await asyncio.sleep(0.2)


def about_itself(cluster):
    """The Events about the scheduler's own pod."""
    posted = [seen for seen in cluster.server.requests if seen.path.endswith("/namespaces/kube-system/events")]
    return [json.loads(seen.body) for seen in posted]


async def place(cluster, *names):
    for name in names:
        cluster.server.put(PODS, pod(name))
        await cluster.until(lambda name=name: cluster.node_of(name))
    return [cluster.node_of(name) for name in names]


async def test_a_swapped_file_is_taken_over_and_later_pods_go_where_it_says(cluster, volume, caplog):
    caplog.set_level("INFO")
    first = await place(cluster, "a", "b")
    assert sorted(first) == ["n1", "n2"], "spread"
    volume.put(PACK)
    await cluster.until(lambda: "configuration taken over" in caplog.text)
    later = await place(cluster, "c", "d", "e")
    assert len(set(later)) == 1, "packed"
    (line,) = [each.getMessage() for each in caplog.records if "configuration taken over" in each.getMessage()]
    assert line == f"configuration taken over file={volume.path} changed=profiles[0].pluginConfig.NodeResourcesFit"
    await until_counted(cluster, success=1, failure=0)
    assert (await metrics(cluster))["last_reload_successful"] == 1.0
    await cluster.until(lambda: about_itself(cluster))
    (event,) = about_itself(cluster)
    assert (event["type"], event["reason"]) == ("Normal", "ConfigurationReloaded")
    assert event["regarding"]["uid"] == "u1"


async def test_a_bad_file_is_refused_with_the_field_and_the_old_one_stays_in_force(cluster, volume, caplog):
    caplog.set_level("INFO")
    began = (await metrics(cluster))["last_reload_success_timestamp_seconds"]
    volume.put(strategy("Tightest", "podMaxBackoffSeconds: -1\n"))
    await cluster.until(lambda: "configuration refused" in caplog.text)
    (line,) = [each.getMessage() for each in caplog.records if "refused" in each.getMessage()]
    assert line.startswith(f"configuration refused, the one before stays in force file={volume.path} errors=")
    assert 'scoringStrategy.type: Unsupported value: "Tightest"' in line
    assert "podMaxBackoffSeconds: Invalid value: -1" in line
    await until_counted(cluster, success=0, failure=1)
    refused = await metrics(cluster)
    assert (refused["last_reload_successful"], refused["last_reload_success_timestamp_seconds"]) == (0.0, began)
    assert sorted(await place(cluster, "a", "b")) == ["n1", "n2"], "spread as before"
    await cluster.until(lambda: about_itself(cluster))
    (event,) = about_itself(cluster)
    assert (event["type"], event["reason"], event["action"]) == ("Warning", "ConfigurationRefused", "Reload")
    assert (event["metadata"]["namespace"], event["regarding"]["name"]) == ("kube-system", "bayplan-1")
    assert "Tightest" in event["note"]

    volume.put(SPREAD)
    await until_counted(cluster, success=1, failure=1)
    mended = await metrics(cluster)
    assert mended["last_reload_successful"] == 1.0
    assert began < mended["last_reload_success_timestamp_seconds"] <= time.time()


async def test_a_file_that_is_gone_is_refused_once(cluster, volume, caplog):
    (volume.folder / "..data").unlink()
    await cluster.until(lambda: "configuration refused" in caplog.text)
    assert "cannot be read: No such file or directory" in caplog.text
    assert await place(cluster, "a")
    await until_counted(cluster, success=0, failure=1)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            strategy("MostAllocated", "clientConnection:\n  qps: 1\n"),
            "clientConnection.qps: Forbidden: is read at the start only",
        ),
        (SPREAD.replace("schedulerName: bayplan", "schedulerName: other"), 'profiles: Forbidden: "bayplan" is missing'),
    ],
)
async def test_what_needs_a_start_is_refused_as_a_whole(cluster, volume, caplog, text, error):
    volume.put(text)
    await cluster.until(lambda: "configuration refused" in caplog.text)
    assert error in caplog.text
    assert sorted(await place(cluster, "a", "b")) == ["n1", "n2"], "spread as before"


async def test_extenders_come_change_and_go(cluster, volume, caplog):
    caplog.set_level("INFO")

    async def put(*servers):
        caplog.clear()
        told = "".join(f"- urlPrefix: {server.url}\n  filterVerb: filter\n  weight: 1\n" for server in servers)
        volume.put(strategy("LeastAllocated", f"extenders:\n{told}" if told else ""))
        await cluster.until(lambda: "configuration taken over" in caplog.text)

    async with ExtenderServer() as first, ExtenderServer() as second:
        first.answers["filter"], second.answers["filter"] = keep("n1"), keep("n2")
        await put(first)
        assert await place(cluster, "a", "b") == ["n1", "n1"]
        await put(second)
        assert await place(cluster, "c", "d") == ["n2", "n2"]
        assert (len(first.calls), len(second.calls)) == (2, 2)
        await put()
        assert sorted(await place(cluster, "e", "f")) == ["n1", "n2"]
        assert (len(first.calls), len(second.calls)) == (2, 2)


async def test_sighup_has_the_file_read_whether_it_changed_or_not(cluster, volume, caplog):
    caplog.set_level("INFO")
    os.kill(os.getpid(), signal.SIGHUP)
    await cluster.until(lambda: "changed=nothing" in caplog.text)
    await until_counted(cluster, success=1, failure=0)
    assert about_itself(cluster) == []
    os.kill(os.getpid(), signal.SIGTERM)
    assert await cluster.exit_code() == 0


async def test_sighup_has_rotated_certificates_of_extenders_read(cluster, tmp_path, caplog):
    authority = tmp_path / "ca.pem"
    authority.write_bytes(Authority().pem)
    extender = (
        f"extenders:\n- urlPrefix: https://127.0.0.1:1\n  tlsConfig: {{caFile: {authority}}}\n  ignorable: true\n"
    )
    made = Volume(tmp_path, f"{extender}{SPREAD}")
    source = ConfigurationSource(WatchedFile(made.path), lambda: load_checked(made.path))
    cluster.start("n1", configuration=source.load(), source=source)
    await cluster.until_ready()
    caplog.set_level("INFO")
    for rotated, changed in ((False, "nothing"), (True, "extenders, by their certificates"), (False, "nothing")):
        if rotated:
            authority.write_bytes(Authority().pem)
        caplog.clear()
        os.kill(os.getpid(), signal.SIGHUP)
        await cluster.until(lambda changed=changed: f"changed={changed}" in caplog.text)


async def test_plugins_that_look_up_what_nobody_watches_are_refused_and_forgotten(cluster, tmp_path, caplog):
    names = ("VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits", "DefaultPreemption")
    disabled = "".join(f"      - name: {name}\n" for name in names)
    plain = f"{HEAD}profiles:\n- schedulerName: bayplan\n  plugins:\n    multiPoint:\n      disabled:\n{disabled}"
    made = Volume(tmp_path, plain)
    source = ConfigurationSource(WatchedFile(made.path), lambda: load_checked(made.path))
    cluster.start("n1", configuration=source.load(), source=source)
    await cluster.until_ready()
    for _ in range(2):
        made.put(SPREAD)
        await cluster.until(lambda: "PersistentVolume is looked up by its plugins and not watched yet" in caplog.text)
        caplog.clear()
        caplog.set_level("INFO")
        made.put(f"podMaxBackoffSeconds: 20\n{plain}")
        os.kill(os.getpid(), signal.SIGHUP)
        await cluster.until(lambda: "configuration taken over" in caplog.text)
        caplog.clear()
    assert await place(cluster, "a") == ["n1"]


async def test_default_spreading_that_nobody_watches_for_is_refused_and_its_component_named(cluster, tmp_path, caplog):
    made = Volume(tmp_path, f"{PACK}  - name: PodTopologySpread\n    args: {{defaultingType: List}}\n")
    source = ConfigurationSource(WatchedFile(made.path), lambda: load_checked(made.path))
    cluster.start("n1", configuration=source.load(), source=source)
    await cluster.until_ready()
    made.put(PACK)
    await cluster.until(lambda: "configuration refused" in caplog.text)
    for kind in ("Service", "ReplicationController", "ReplicaSet", "StatefulSet"):
        assert f"{kind} is looked up by its plugins and not watched yet" in caplog.text
    assert "with the rights of manifests/components/default-spreading" in caplog.text
    assert await place(cluster, "a") == ["n1"]


async def test_an_error_that_nobody_expected_leaves_all_as_it_was(cluster, volume, caplog, monkeypatch):
    def fail(self):
        raise LookupError("sesame")

    monkeypatch.setattr("bayplan.scheduler.sampling.NodeSearch.__init__", lambda self, nodes: fail(self))
    volume.put(f"percentageOfNodesToScore: 10\n{PACK}")
    await cluster.until(lambda: "configuration refused" in caplog.text)
    assert "errors=LookupError" in caplog.text
    assert sorted(await place(cluster, "a", "b")) == ["n1", "n2"], "spread as before"


@pytest.mark.parametrize("environment", [{}, {"POD_NAME": "p"}, {"POD_NAMESPACE": "n"}])
def test_outside_a_pod_it_has_no_pod_of_its_own(environment):
    assert own_pod(environment) is None
