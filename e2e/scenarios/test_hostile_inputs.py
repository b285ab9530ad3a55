"""The table of hostile inputs on a real API server: its answers, bayplan's verdicts, and no harm to other pods."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.waiting import wait_until
from e2e.hostile import surroundings
from e2e.hostile.amounts import CPU
from e2e.hostile.api_requests import ODD
from e2e.hostile.row import BOUND, GATED, NAMESPACE, Row
from e2e.hostile.surroundings import pod_documents, send
from e2e.hostile.table import CASES, ROWS
from e2e.scenarios.outcomes import (
    assert_alive_without_a_traceback,
    condition_of,
    configuration,
    metric,
    wait_bound,
    wait_refused,
)

pytestmark = pytest.mark.controlplane
ORDINARY = 30
MIB = 2**20
MOST_LEFT_BEHIND_MIB = 48
"""How much larger two more storms may leave the process: the pods of two decode to 80 MiB, before anything is
derived from them, and the allocator returns memory in pieces that differ by half of this from storm to storm."""
DECIDED_SECONDS = 240.0
"""How long all pods of the table may take together: they are ten megabytes of JSON, on a machine that may be busy."""


@dataclass(frozen=True)
class World:
    client: ApiClient
    process: BayplanProcess

    def storm(self, ordinary: str) -> None:
        """All pods of the table at once, with ordinary ones among them, until each has its verdict."""
        documents = pod_documents()
        among = [pod(f"{ordinary}-{index}", NAMESPACE) for index in range(ORDINARY)]
        self.client.create_all("pods", [*documents[::2], *among, *documents[1::2]])
        wait_bound(self.client, NAMESPACE, [one["metadata"]["name"] for one in among], timeout_seconds=DECIDED_SECONDS)
        wait_until(lambda: not self._undecided(), "all verdicts", timeout_seconds=DECIDED_SECONDS)

    def _undecided(self) -> list[str]:
        found = {one["metadata"]["name"]: one for one in self.client.list("pods", NAMESPACE)}
        return [n for n in CASES if not found[n]["spec"].get("nodeName") and not condition_of(found[n]).get("reason")]

    def calm(self) -> int:
        """Deletes all pods, waits until the scheduler has let go of them, and returns its resident memory."""
        surroundings.delete_pods(self.client)
        wait_until(
            lambda: metric(self.process, "scheduler_cache_size", type="pods") == 0,
            "the cache being empty",
            timeout_seconds=DECIDED_SECONDS,
        )
        wait_until(lambda: metric(self.process, "scheduler_pending_pods") == 0, "the queue being empty")
        return self.process.rss_bytes()


@pytest.fixture(scope="module")
def world(
    control_plane: ControlPlane, bayplan_identity: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """All the odd pods and nodes at once, among ordinary ones, given to one scheduler."""
    client = control_plane.client
    surroundings.set_up(client)
    process = BayplanProcess(
        tmp_path_factory.mktemp("hostile"), config=configuration(), kubeconfig=bayplan_identity, by_command=True
    )
    try:
        process.wait_ready()
        world = World(client, process)
        world.storm("ordinary")
        yield world
    finally:
        process.stop(10)
        surroundings.take_down(client)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"H{row.number}")
def test_a_hostile_input_is_refused_by_the_api_server_or_gets_the_right_verdict(world: World, row: Row) -> None:
    for request in row.requests:
        send(world.client, request)
    for name, case in row.pods.items():
        found = world.client.get("pods", name, NAMESPACE)
        condition = condition_of(found)
        if case.verdict == BOUND:
            assert found["spec"].get("nodeName"), f"{name}: {condition}"
            continue
        assert not found["spec"].get("nodeName"), name
        assert case.verdict in condition["message"]
        assert condition["reason"] == ("SchedulingGated" if case.verdict == GATED else "Unschedulable")


def test_a_pod_that_comes_after_all_of_them_is_bound_and_the_log_holds_no_exception(world: World) -> None:
    world.client.create("pods", pod("last", NAMESPACE))
    wait_bound(world.client, NAMESPACE, ["last"])
    assert_alive_without_a_traceback(world.process)
    assert "\x1b" not in world.process.log()


def test_a_node_that_turns_odd_is_left_and_taken_again_when_it_recovers(world: World) -> None:
    client = world.client
    amounts = {"cpu": "8", "memory": "8Gi", "pods": "10"}
    # A taint of its own, or the pods that wait for very much CPU would come while it has it.
    client.create("nodes", node("turning", cpu="8", labels={"pool": "turning"}, taints=[{**ODD, "key": "turning"}]))

    def pod_for(name: str) -> Object:
        tolerations = [{"key": "turning", "operator": "Exists"}]
        spec: Object = {"nodeSelector": {"pool": "turning"}, "tolerations": tolerations}
        return pod(name, NAMESPACE, requests={"cpu": "1"}, **spec)

    client.create("pods", pod_for("turning-1"))
    wait_bound(client, NAMESPACE, ["turning-1"])
    for index, cpu in enumerate(["0", "1e100", "1n"]):
        odd = {**amounts, "cpu": cpu}
        client.patch("nodes", "turning", {"status": {"allocatable": odd, "capacity": odd}}, subresource="status")
        client.create("pods", pod_for(f"odd-{index}"))
        if cpu == "1e100":
            wait_bound(client, NAMESPACE, [f"odd-{index}"])
        else:
            assert CPU in wait_refused(client, NAMESPACE, f"odd-{index}")["message"]
    client.patch("nodes", "turning", {"status": {"allocatable": amounts, "capacity": amounts}}, subresource="status")
    wait_bound(client, NAMESPACE, ["odd-0", "odd-2"])


def test_more_storms_leave_no_more_memory_behind_than_one(world: World) -> None:
    """What stays of one are logs and caches with bounds in bytes, and memory that the allocator holds for the next."""
    after_one = world.calm()
    for serial in range(2):
        world.storm(f"again-{serial}")
        after_three = world.calm()
    assert (after_three - after_one) / MIB < MOST_LEFT_BEHIND_MIB
