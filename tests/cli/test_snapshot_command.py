import asyncio
import gzip
import json
import threading

import pytest
from tests.faults.api_server import FakeApiServer
from tests.faults.faults import Refuse

from bayplan.cli import main

PODS, NODES = "/api/v1/pods", "/api/v1/nodes"
CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
BUDGETS = "/apis/policy/v1/poddisruptionbudgets"


class Served:
    """A fake API server on a thread of its own, as the command has a loop of its own."""

    def __init__(self, kubeconfig):
        self.kubeconfig = str(kubeconfig)
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._started.wait(20)
        cluster = {"name": "c", "cluster": {"server": self.fake.url}}
        context = {"name": "x", "context": {"cluster": "c", "user": ""}}
        document = {"clusters": [cluster], "contexts": [context], "current-context": "x"}
        kubeconfig.write_text(json.dumps(document))

    async def _serve(self):
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        async with FakeApiServer() as self.fake:
            self.fake.put(NODES, {"metadata": {"name": "acme-1"}, "status": {"allocatable": {"cpu": "4", "pods": "9"}}})
            spec = {
                "schedulerName": "bayplan",
                "containers": [{"name": "c", "env": [{"name": "A", "value": "secret"}]}],
            }
            self.fake.put(PODS, {"metadata": {"name": "acme-web", "namespace": "default"}, "spec": spec})
            self._started.set()
            await self._ended.wait()

    def end(self):
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()


@pytest.fixture
def served(tmp_path):
    served = Served(tmp_path / "kubeconfig")
    yield served
    served.end()


@pytest.fixture
def snapshot(served, capfd):
    def snapshot(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["snapshot", "--kubeconfig", served.kubeconfig, *arguments])
        captured = capfd.readouterr()
        assert "Traceback" not in captured.err
        return ended.value.code or 0, captured.out, captured.err

    return snapshot


def simulated(file, capfd):
    with pytest.raises(SystemExit) as ended:
        main(["simulate", "--cluster", str(file), "-o", "json"])
    assert not ended.value.code
    return json.loads(capfd.readouterr().out)


def test_what_a_simulation_reads_is_in_the_file_and_counted(snapshot, tmp_path, capfd):
    file = tmp_path / "cluster.json"
    code, out, err = snapshot("-o", str(file))
    assert (code, out, err) == (0, "", f"{file}: 1 Pod, 1 Node\n")
    assert "secret" not in file.read_text()
    (pod,) = simulated(file, capfd)["pods"]
    assert (pod["name"], pod["attempts"][0]["node"]) == ("acme-web", "acme-1")


def test_a_redacted_file_tells_no_names_and_decides_the_same(snapshot, tmp_path, capfd):
    file = tmp_path / "cluster.json.gz"
    assert snapshot("-o", str(file), "--redact")[0] == 0
    assert b"acme" not in gzip.decompress(file.read_bytes())
    report = simulated(file, capfd)
    assert (report["summary"]["scheduled"], report["pods"][0]["namespace"]) == (1, "default")


def test_devices_that_a_redacted_file_lacks_are_not_counted(snapshot, served, tmp_path):
    served.fake.put(CLAIMS, {"metadata": {"name": "acme-gpu", "namespace": "default"}, "spec": {}})
    file = tmp_path / "cluster.json"
    assert snapshot("-o", str(file)) == (0, "", f"{file}: 1 Pod, 1 Node, 1 ResourceClaim\n")
    assert snapshot("-o", str(file), "--redact") == (0, "", f"{file}: 1 Pod, 1 Node\n")


def test_standard_output_has_the_snapshot_and_nothing_else(snapshot):
    code, out, err = snapshot("-o", "-")
    assert (code, err) == (0, "standard output: 1 Pod, 1 Node\n")
    assert [each["kind"] for each in json.loads(out)["items"]] == ["Pod", "Node"]


def test_a_missing_right_is_one_line_that_names_it_and_no_file(snapshot, served, tmp_path):
    served.fake.inject(Refuse(403, "Forbidden"), path=BUDGETS)
    file = tmp_path / "cluster.json"
    code, _, err = snapshot("-o", str(file))
    assert code == 1
    assert err.splitlines()[0].endswith("the right to list poddisruptionbudgets.policy is missing")
    assert "--ignore-forbidden" in err.splitlines()[1]
    assert not file.exists()


def test_a_kind_that_may_not_be_listed_can_be_left_out(snapshot, served, tmp_path):
    served.fake.inject(Refuse(403, "Forbidden"), path=BUDGETS)
    code, _, err = snapshot("-o", str(tmp_path / "cluster.json"), "--ignore-forbidden")
    assert code == 0
    assert err.splitlines()[0].startswith("left out: poddisruptionbudgets: 403 Forbidden")


def test_an_object_that_cannot_be_read_is_named(snapshot, served, tmp_path):
    served.fake.put(PODS, {"metadata": {"name": "bad", "namespace": "default"}, "spec": {"nodeName": 7}})
    code, _, err = snapshot("-o", str(tmp_path / "cluster.json"))
    assert code == 0
    assert err.splitlines()[0] == 'left out: Pod "default/bad": spec.nodeName: Invalid value: integer: must be a string'


@pytest.mark.parametrize(
    ("name", "why"), [("none/cluster.json", "No such file"), ("a\0b", "null byte"), ("/dev/full", "space")]
)
def test_a_file_that_cannot_be_written_is_one_line(snapshot, tmp_path, name, why):
    code, _, err = snapshot("-o", name if name.startswith("/") else str(tmp_path / name))
    assert code == 1
    (line,) = err.splitlines()
    assert ": cannot be written: " in line
    assert why in line


@pytest.mark.parametrize(
    "command", ["snapshot -o -", "trace record -o -", "doctor", "explain shop/web", "queue", "run"]
)
def test_a_kubeconfig_that_is_missing_is_wrong_input_and_told_alike_by_every_command(capfd, tmp_path, command):
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "--kubeconfig", str(tmp_path / "none")])
    assert (ended.value.code, capfd.readouterr().err) == (2, f"kubeconfig not found: {tmp_path / 'none'}\n")


@pytest.mark.parametrize("command", [["snapshot"], ["trace", "record", "--duration", "5s"]])
def test_an_api_server_that_is_not_there_is_told_at_once(capfd, tmp_path, monkeypatch, command):
    for waiting in ("bayplan.snapshot.listing.list_kind", "bayplan.replay.recording.record"):
        monkeypatch.setattr(waiting, lambda *_, **__: pytest.fail("is waited for"))
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:2"}}
    context = {"name": "x", "context": {"cluster": "c", "user": ""}}
    document = {"clusters": [cluster], "contexts": [context], "current-context": "x"}
    (tmp_path / "kubeconfig").write_text(json.dumps(document))
    with pytest.raises(SystemExit) as ended:
        main([*command, "--kubeconfig", str(tmp_path / "kubeconfig"), "--master", "http://127.0.0.1:1", "-o", "-"])
    assert ended.value.code == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("the API server at http://127.0.0.1:1 does not answer: GET /version: ")


def test_labels_are_kept_in_redacted_files_alone(snapshot):
    code, _, err = snapshot("-o", "-", "--keep-label", "rack")
    assert code == 2
    assert "give both" in err


def test_a_cluster_that_refuses_is_one_line(snapshot, served):
    served.fake.inject(Refuse(400, "BadRequest"), path=NODES)
    code, _, err = snapshot("-o", "-")
    assert (code, err) == (1, "nodes: 400 BadRequest: injected\n")
