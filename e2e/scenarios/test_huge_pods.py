"""Pods of more than a megabyte, of which no decision reads but a little."""

import pytest
from e2e.bench.huge_pods import create_huge_pods
from e2e.conftest import RunBayplan
from e2e.controlplane.client import ApiClient
from e2e.controlplane.objects import node, pod
from e2e.scenarios.outcomes import wait_bound, wait_event

pytestmark = pytest.mark.controlplane


def test_what_no_decision_reads_of_waiting_pods_takes_no_memory(
    client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    """Fifty of them as whole dicts are half a gigabyte."""
    client.create("nodes", node("n0"))
    create_huge_pods(client, namespace, 50, 1_200_000)
    process = run_bayplan(by_command=True)
    wait_event(client, namespace, "waits-49", "FailedScheduling")
    client.create("pods", pod("small", namespace))
    wait_bound(client, namespace, ["small"])
    assert process.peak_rss_bytes() < 300e6
