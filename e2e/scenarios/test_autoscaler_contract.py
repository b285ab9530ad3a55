"""What cluster-autoscaler and Karpenter read on pods, replayed on every version a pod has on a real API server.

A watch keeps each version of each pod. The predicates below are those by which the two decide whether to add a node.
"""

from collections import defaultdict
from collections.abc import Collection

import pytest
from e2e.conftest import RunBayplan
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, Object, Objects
from e2e.controlplane.objects import node, pod_of_class
from e2e.controlplane.recorder import PodRecorder
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.conftest import CreateClass
from e2e.scenarios.outcomes import (
    condition_of,
    configuration,
    end_pod,
    fill_nodes,
    profile,
    terminating,
    wait_bound,
    wait_nominated,
    wait_refused,
)

pytestmark = [pytest.mark.controlplane, pytest.mark.usefixtures("priority_classes")]

EXPENDABLE_BELOW = -10
"""The default of cluster-autoscaler's --expendable-pods-priority-cutoff."""


def is_unschedulable(pod: Object) -> bool:
    """Cluster-autoscaler: isUnschedulable in utils/kubernetes/listers.go."""
    condition = condition_of(pod)
    return (
        not pod["spec"].get("nodeName")
        and "deletionTimestamp" not in pod["metadata"]
        and condition.get("status") == "False"
        and condition["reason"] == "Unschedulable"
    )


def is_unprocessed(pod: Object, bypassed: Collection[str]) -> bool:
    """Cluster-autoscaler: SchedulerUnprocessedPods in utils/kubernetes/listers.go, for --bypassed-scheduler-names."""
    condition = condition_of(pod)
    return (
        pod["spec"]["schedulerName"] in bypassed
        and not pod["spec"].get("nodeName")
        and "deletionTimestamp" not in pod["metadata"]
        and (not condition or (condition["status"] == "False" and not condition.get("reason")))
    )


def cluster_autoscaler_adds_a_node(
    pod: Object, nodes: Collection[str], *, allowed: Collection[str] = (), bypassed: Collection[str] = ()
) -> bool:
    """Cluster-autoscaler: the lists above, then FilterOutExpendableAndSplit in core/utils/expendable.go.

    `allowed` is --allowed-scheduler-names. The nodes it would add to are taken to fit the pod.
    """
    if allowed and pod["spec"]["schedulerName"] not in allowed:
        return False
    if not is_unschedulable(pod) and not is_unprocessed(pod, bypassed):
        return False
    if pod["spec"].get("priority", 0) < EXPENDABLE_BELOW:
        return False
    return pod["status"].get("nominatedNodeName", "") not in nodes


def karpenter_provisions(pod: Object) -> bool:
    """Karpenter: IsProvisionable in pkg/utils/pod/scheduling.go."""
    owners = {(owner["apiVersion"], owner["kind"]) for owner in pod["metadata"].get("ownerReferences", [])}
    return (
        condition_of(pod).get("reason") == "Unschedulable"
        and not pod["spec"].get("nodeName")
        and not pod["status"].get("nominatedNodeName")
        and not owners & {("apps/v1", "DaemonSet"), ("v1", "Node")}
    )


class Versions(PodRecorder):
    """Keeps every version of every pod that the watch shows."""

    def __init__(self, client: ApiClient) -> None:
        self._versions: dict[str, Objects] = defaultdict(list)
        super().__init__(client)

    def _append(self, kind: str, document: Object) -> None:
        self._versions[document["metadata"]["name"]].append(document)
        super()._append(kind, document)

    def of(self, name: str) -> Objects:
        """All versions of a pod up to this call, oldest first."""
        self.catch_up()
        assert self.gaps == 0
        return list(self._versions[name])


def wants_a_node(pod: Object, nodes: Collection[str]) -> tuple[bool, bool]:
    """Whether cluster-autoscaler and Karpenter add a node for this version of a pod."""
    return cluster_autoscaler_adds_a_node(pod, nodes), karpenter_provisions(pod)


def test_a_pod_that_fits_nowhere_is_seen_by_both_and_only_until_its_node_is_there(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    client.create("nodes", node("small", cpu="1"))
    with Versions(client) as versions:
        client.create("pods", pod_of_class("big", namespace, "low", cpu="2"))
        condition = wait_refused(client, namespace, "big")
        assert (condition["type"], condition["status"], condition["reason"]) == (
            "PodScheduled",
            "False",
            "Unschedulable",
        )
        assert condition["message"] == (
            "0/1 nodes are available: 1 Insufficient cpu. "
            "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        )
        client.create("nodes", node("added", cpu="2"))
        assert wait_bound(client, namespace, ["big"]) == {"big": "added"}
        seen = [wants_a_node(version, {"small"}) for version in versions.of("big")]
    # Created, refused, bound: one stretch in which a node is wanted, and both see the same one.
    assert seen[0] == seen[-1] == (False, False)
    wanted = [index for index, each in enumerate(seen) if each == (True, True)]
    assert wanted == list(range(wanted[0], wanted[-1] + 1))
    assert len(wanted) + seen.count((False, False)) == len(seen)


def test_no_version_of_a_preempting_pod_makes_anybody_add_a_node(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    fill_nodes(client, namespace, "n1")
    with Versions(client) as versions:
        client.create("pods", pod_of_class("high", namespace, "high"))
        wait_nominated(client, namespace, "high", "n1")
        wait_until(
            lambda: "deletionTimestamp" in client.get("pods", "low-n1-0", namespace)["metadata"], "the victim's end"
        )
        client.delete("pods", "low-n1-0", namespace=namespace, grace_seconds=0)
        assert wait_bound(client, namespace, ["high"]) == {"high": "n1"}
        history = versions.of("high")
    # The condition that both look for is there, but never without the nomination that holds them back.
    assert any(is_unschedulable(version) for version in history)
    assert {wants_a_node(version, {"n1"}) for version in history} == {(False, False)}
    first = next(version for version in history if condition_of(version).get("reason") == "Unschedulable")
    assert first["status"]["nominatedNodeName"] == "n1"
    assert condition_of(first)["message"] == (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "preemption: found a potential placement for pod on node n1, preempting 1 victims"
    )


def test_a_pod_whose_nominated_node_vanishes_is_given_up_to_the_autoscalers(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    fill_nodes(client, namespace, "n1")
    client.create("pods", pod_of_class("high", namespace, "high"))
    wait_nominated(client, namespace, "high", "n1")
    client.delete("nodes", "n1")
    swept = wait_nominated(client, namespace, "high", "")
    assert wants_a_node(swept, {}) == (True, True)
    client.create("nodes", node("added", cpu="1"))
    assert wait_bound(client, namespace, ["high"]) == {"high": "added"}


def test_a_pod_that_lost_its_node_to_a_higher_one_is_given_up_to_the_autoscalers(
    client: ApiClient, namespace: str, bayplan: BayplanProcess, create_class: CreateClass
) -> None:
    create_class("highest", 2000)
    fill_nodes(client, namespace, "n1", pods=2)
    client.create("pods", pod_of_class("high", namespace, "high"))
    wait_nominated(client, namespace, "high", "n1")
    client.create("pods", pod_of_class("highest", namespace, "highest", cpu="2"))
    wait_nominated(client, namespace, "highest", "n1")
    loser = wait_nominated(client, namespace, "high", "")
    assert wants_a_node(loser, {"n1"}) == (True, True)
    assert wants_a_node(client.get("pods", "highest", namespace), {"n1"}) == (False, False)


def _patient(seconds: int) -> Object:
    """A scheduler of another name, as the one that serves the other tests preempts at once."""
    preemption = {"name": "DefaultPreemption", "args": {"bayplan.io": {"preemptionDelaySeconds": seconds}}}
    return configuration(profile("patient", pluginConfig=[preemption]))


def test_an_autoscaler_that_is_given_time_adds_a_node_and_nobody_is_evicted(
    client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    run_bayplan(_patient(300))
    fill_nodes(client, namespace, "n1")
    client.create("pods", pod_of_class("high", namespace, "high", scheduler="patient"))
    wait_refused(client, namespace, "high")
    assert wants_a_node(client.get("pods", "high", namespace), {"n1"}) == (True, True)
    client.create("nodes", node("added", cpu="1"))
    assert wait_bound(client, namespace, ["high"]) == {"high": "added"}
    assert "deletionTimestamp" not in client.get("pods", "low-n1-0", namespace)["metadata"]


def test_when_no_node_comes_in_time_the_pod_preempts_and_is_no_longer_the_autoscalers(
    client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    run_bayplan(_patient(5))
    fill_nodes(client, namespace, "n1")
    with Versions(client) as versions:
        client.create("pods", pod_of_class("high", namespace, "high", scheduler="patient"))
        wait_nominated(client, namespace, "high", "n1")
        seen = [wants_a_node(version, {"n1"}) for version in versions.of("high")]
    assert seen[0] == (False, False)
    assert seen[1] == (True, True)
    assert seen[-1] == (False, False)


def test_a_gated_pod_is_nobodys_reason_to_add_a_node(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    with Versions(client) as versions:
        client.create("pods", pod_of_class("gated", namespace, "low", schedulingGates=[{"name": "example.com/wait"}]))
        client.create("pods", pod_of_class("free", namespace, "low"))
        wait_refused(client, namespace, "free")
        history = versions.of("gated")
    assert [wants_a_node(version, {}) for version in history] == [(False, False)]


def test_a_pod_of_very_low_priority_is_expendable_to_cluster_autoscaler_alone(
    client: ApiClient, namespace: str, bayplan: BayplanProcess, create_class: CreateClass
) -> None:
    verdicts = {}
    for name, value in {"expendable": EXPENDABLE_BELOW - 1, "just-not": EXPENDABLE_BELOW}.items():
        create_class(name, value)
        client.create("pods", pod_of_class(name, namespace, name))
        wait_refused(client, namespace, name)
        verdicts[name] = wants_a_node(client.get("pods", name, namespace), {})
    assert verdicts == {"expendable": (False, True), "just-not": (True, True)}


def test_the_scheduler_names_an_operator_gives_cluster_autoscaler_select_bayplans_pods(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    with Versions(client) as versions:
        client.create("pods", pod_of_class("waiting", namespace, "low"))
        wait_refused(client, namespace, "waiting")
        new, *_, refused = versions.of("waiting")
    assert cluster_autoscaler_adds_a_node(refused, {}, allowed={"default-scheduler", "bayplan"})
    assert not cluster_autoscaler_adds_a_node(refused, {}, allowed={"default-scheduler"})
    # Bypassing bayplan means not to wait for its verdict; the verdict then changes nothing.
    assert not cluster_autoscaler_adds_a_node(new, {})
    assert cluster_autoscaler_adds_a_node(new, {}, bypassed={"bayplan"})
    assert cluster_autoscaler_adds_a_node(refused, {}, bypassed={"bayplan"})


def test_autoscalers_and_preemption_together_add_only_the_nodes_that_are_missing(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    """Half of the pods find victims, half do not; a loop adds one node for each pod that Karpenter would take."""
    full = [f"n{index}" for index in range(3)]
    fill_nodes(client, namespace, *full)
    waiting = [f"high-{index}" for index in range(6)]
    client.create_all("pods", [pod_of_class(name, namespace, "high") for name in waiting])
    added: list[str] = []

    def settled() -> bool:
        pods = {found["metadata"]["name"]: found for found in client.list("pods", namespace)}
        # One that is nominated may take a node that was added, and leave its own to another: what nobody stays on,
        # or is nominated to, counts for the pods that want a node.
        staying = [found for found in pods.values() if "deletionTimestamp" not in found["metadata"]]
        free = {*full, *added} - {
            found["spec"].get("nodeName") or found["status"].get("nominatedNodeName") for found in staying
        }
        for _ in range(sum(karpenter_provisions(pods[name]) for name in waiting) - len(free)):
            added.append(f"added-{len(added)}")
            client.create("nodes", node(added[-1], cpu="1"))
        for name in terminating(client, namespace):
            end_pod(client, namespace, name)
        return all(pods[name]["spec"].get("nodeName") for name in waiting)

    wait_until(settled, "all pods to be bound", timeout_seconds=60.0)
    assert len(added) == len(waiting) - len(full)
