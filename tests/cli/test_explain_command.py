"""`bayplan explain` at a terminal: what it prints, and how it ends."""

import asyncio
import json

import pytest
from tests.cli.forged_queue import queue_full_of
from tests.client.conftest import cluster, kubeconfig, scheduler  # noqa: F401  fixtures

from bayplan.cli import main
from bayplan.client.errors import NotReachedError, RefusedError
from bayplan.client.scheduler_client import SchedulerClient


@pytest.fixture
def explain(kubeconfig, capsys):  # noqa: F811  the fixture
    """Runs the command beside the scheduler that it asks; gives exit code, output and errors."""

    async def run(*arguments):
        def call():
            with pytest.raises(SystemExit) as caught:
                main(["explain", *arguments, "--kubeconfig", str(kubeconfig)])
            return caught.value.code or 0

        code = await asyncio.to_thread(call)
        return code, *capsys.readouterr()

    return run


async def test_nothing_is_left_to_say_once_it_ended(explain, caplog):
    await explain("big")
    await asyncio.sleep(0.05)
    assert caplog.messages == []


@pytest.mark.parametrize(
    "pod", [("big",), ("pod/big", "-n", "default"), ("default/big",), ("default/big", "-n", "default")]
)
async def test_it_says_why_a_pod_is_pending_and_where_it_waits(explain, pod):
    code, out, err = await explain(*pod)
    assert (code, err) == (0, "")
    assert out.startswith(
        "default/big: waits, no node fits; would help: 1000m less of cpu, on n1\n"
        "  now: 0 of 1 node fits\n"
        "  1 node: NodeResourcesFit: cpu, asked 5000m, most free 4000m on n1 (n1)\n"
        "  would help: 1000m less of cpu, on n1\n"
        "  waits: unschedulable, priority 0, 1 attempt, since "
    )
    assert "  woken by: AssignedPodDelete, " in out
    assert ": 0/1 nodes are available: 1 Insufficient cpu." in out.splitlines()[-1]


async def test_a_pod_that_is_not_there_yet_is_placed_by_the_scheduler_that_runs(explain, tmp_path):
    file = tmp_path / "pod.yaml"
    container = "{name: c, resources: {requests: {cpu: 1}}}"
    file.write_text(
        f"{{kind: Pod, metadata: {{name: new}}, spec: {{schedulerName: bayplan, containers: [{container}]}}}}"
    )
    code, out, err = await explain("-f", str(file), "-n", "shop")
    assert (code, err) == (0, "")
    assert out.startswith("shop/new: n1, the only node that fits")


async def test_all_that_wait_are_told_by_reason_with_a_pod_as_example(explain):
    code, out, _ = await explain("--pending")
    assert (code, out.splitlines()[0]) == (0, "1 pod waits")
    assert out.splitlines()[1].startswith("  1 unschedulable: 0/1 nodes are available: 1 Insufficient cpu.")
    assert out.endswith("(such as default/big)\n")
    assert (await explain("--pending", "-n", "shop"))[1] == "no pod waits in namespace shop\n"


async def test_pods_that_wait_for_claims_of_their_own_wait_for_one_reason(explain, monkeypatch):
    def item(name):
        said = f'persistentvolumeclaim "{name}-data" not found, which pod default/{name} names'
        numbers = {"priority": 0, "position": None, "attempts": 1, "nextRetry": None, "nominatedNode": None}
        texts = dict.fromkeys(("schedulerName", "waitingSince"), "")
        return (
            {"namespace": "default", "name": name, "queue": "gated", "rejectedBy": [], "message": said}
            | numbers
            | texts
        )

    async def queue_page(self, start, limit):
        items = [item(each) for each in ("web-b7x", "web-q", "a")]
        return json.dumps({"time": "", "total": 3, "items": items, "continue": None}).encode()

    monkeypatch.setattr(SchedulerClient, "queue_page", queue_page)
    _, out, _ = await explain("--pending")
    heading, line = out.splitlines()
    assert heading == "3 pods wait"
    assert line.startswith('  3 gated: persistentvolumeclaim "web-b7x-data" not found')


@pytest.mark.parametrize("name", ["..", ".", "", "../../x", "z\udcff"])
async def test_what_can_be_no_name_is_one_line(explain, name):
    code, out, err = await explain(name)
    assert (code, out) == (2, "")
    assert err.endswith(": is no name of a pod or namespace\n")
    assert err.count("\n") == 1


async def test_it_writes_json_for_programs(explain):
    code, out, _ = await explain("big", "-o", "json")
    assert (code, json.loads(out)["queue"]["queue"]) == (0, "unschedulable")


async def test_a_pod_that_is_nowhere_is_one_line(explain):
    assert await explain("nobody") == (1, "", "there is no pod default/nobody\n")


async def test_a_pod_of_another_scheduler_is_named_with_its_scheduler(explain, cluster):  # noqa: F811  the fixture
    pod = {"metadata": {"name": "nobody", "namespace": "default"}, "spec": {"schedulerName": "other", "nodeName": "n1"}}
    cluster.answers["/api/v1/namespaces/default/pods/nobody"] = (200, pod)
    code, _, err = await explain("nobody")
    assert code == 1
    said = "the one that was asked does not know it and schedules for bayplan\n"
    assert err == f"pod default/nobody on n1 is for the scheduler 'other'; {said}"


@pytest.mark.parametrize("problem", [RefusedError(403, "403 Forbidden"), NotReachedError("gone")])
async def test_a_pod_that_is_nowhere_is_named_also_where_no_summary_is_given(explain, monkeypatch, cluster, problem):  # noqa: F811  the fixture
    async def summary(self):
        raise problem

    monkeypatch.setattr(SchedulerClient, "summary", summary)
    assert await explain("nobody") == (1, "", "there is no pod default/nobody\n")
    pod = {"metadata": {"name": "nobody", "namespace": "default"}, "spec": {"schedulerName": "other"}}
    cluster.answers["/api/v1/namespaces/default/pods/nobody"] = (200, pod)
    said = "pod default/nobody is for the scheduler 'other'; the one that was asked does not know it\n"
    assert await explain("nobody") == (1, "", said)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            {"nodeName": "gone"},
            " on gone is not known to the scheduler that was asked, which knows no node of that name",
        ),
        ({}, " is not known to the scheduler that was asked, which may not have heard of it yet: ask again"),
    ],
)
async def test_a_pod_of_its_own_that_it_does_not_know_is_told_without_another_scheduler(explain, cluster, spec, said):  # noqa: F811  the fixture
    pod = {"metadata": {"name": "nobody", "namespace": "default"}, "spec": {"schedulerName": "bayplan", **spec}}
    cluster.answers["/api/v1/namespaces/default/pods/nobody"] = (200, pod)
    assert await explain("nobody") == (1, "", f"pod default/nobody{said}\n")


async def test_a_misspelled_scheduler_is_told_with_the_name_that_is_meant(explain, cluster):  # noqa: F811  the fixture
    pod = {"metadata": {"name": "nobody", "namespace": "default"}, "spec": {"schedulerName": "bayplna"}}
    cluster.answers["/api/v1/namespaces/default/pods/nobody"] = (200, pod)
    code, _, err = await explain("nobody")
    assert code == 1
    assert err.endswith(' schedules for bayplan, did you mean "bayplan"?\n')


async def test_without_a_scheduler_it_ends_with_one_line(explain, cluster):  # noqa: F811  the fixture
    cluster.answers.clear()
    code, out, err = await explain("big")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("there is no Lease")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("big", "--certificate-authority", "x"), "are about --server"),
        (("big", "--token-file", "x", "--own-token"), "exclude each other"),
        (("big", "--server", "localhost:10259"), "--server: 'localhost:10259' is no address"),
        (("big", "--server", "http://example.com"), "--server: http is for a port of this machine"),
        (("big", "--server", "https://localhost:1", "--token-file", "nowhere"), "--token-file: nowhere: No such file"),
        ((), "give one of POD, --filename and --pending"),
        (("shop/web", "-n", "default"), "'shop/web' names the namespace 'shop' and --namespace 'default': give one"),
        (("big", "--pending"), "give one of POD, --filename and --pending"),
    ],
)
async def test_wrong_options_end_with_exit_code_2(explain, arguments, said):
    code, _, err = await explain(*arguments)
    assert (code, said in err) == (2, True)


async def test_a_file_with_a_mistake_is_refused_with_its_place_and_the_scheduler_is_not_asked(explain, tmp_path):
    file = tmp_path / "pod.yaml"
    file.write_text(
        "kind: Pod\napiVersion: v1\nmetadata: {name: new}\n"
        "spec:\n  nodeSelectr: {a: b}\n  containers: [{name: c}]\n  priority: many\n"
    )
    code, out, err = await explain("-f", str(file))
    assert (code, out) == (2, "")
    first, second = err.splitlines()
    assert first.startswith(f"{file}:5:3: ")
    assert first.endswith('spec.nodeSelectr: unknown field, did you mean "nodeSelector"?')
    assert second.endswith('spec.priority: Invalid value: "many": must be an integer')


async def test_the_reasons_of_pods_reach_the_terminal_without_codes(explain, monkeypatch):
    monkeypatch.setattr(SchedulerClient, "queue_page", queue_full_of("\x1b[2J\u202e\r"))
    _, out, _ = await explain("--pending")
    heading, line, end = out.split("\n")
    assert (heading, end) == ("1 pod waits", "")
    assert line.isprintable()
    assert line.count("\\x1b[2J\\u202e\\r") == 4


@pytest.fixture
async def forged(explain, monkeypatch):
    """An answer to be filled with what a stranger wrote, which the scheduler then gives."""
    _, out, _ = await explain("big", "-o", "json")
    answer = json.loads(out)

    async def given(self, namespace, name):
        return json.dumps(answer).encode()

    monkeypatch.setattr(SchedulerClient, "explanation", given)
    return answer


async def test_what_the_scheduler_refuses_of_a_file_is_told_of_the_file(explain, tmp_path):
    file = tmp_path / "node.yaml"
    file.write_text("{kind: Node, metadata: {name: n2}}")
    code, out, err = await explain("-f", str(file))
    assert (code, out) == (1, "")
    assert err == f"{file}: items[0]: Node: only pods, workloads and what they look up can be asked about\n"


async def test_no_field_of_an_answer_reaches_the_terminal_as_a_code(explain, forged):
    code = "\x1b[2J"
    forged["queue"] |= dict.fromkeys(("queue", "waitingSince", "nextRetry"), code)
    forged["wokenBy"] = [{"plugin": code, "event": code}]
    forged["attempts"][0] |= {"time": code, "message": code}
    _, out, _ = await explain("big")
    assert all(line.isprintable() for line in out.splitlines())
    assert out.count("\\x1b[2J") == 7
    forged["queue"]["attempts"] = code
    exit_code, out, err = await explain("big")
    assert (exit_code, out, err.count("\n")) == (1, "", 1)
    assert "Expected `int`, got `str` - at `$.queue.attempts`" in err
