"""Preemption on a real API server; no kubelet runs, so victims end exactly when a test says so."""

import pytest
from e2e.conftest import RunBayplan
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.objects import node, pod_of_class
from e2e.controlplane.recorder import PodRecorder
from e2e.controlplane.waiting import wait_until
from e2e.scenarios.conftest import CreateClass
from e2e.scenarios.outcomes import (
    assert_alive_without_a_traceback,
    assert_each_bound_once,
    condition_of,
    configuration,
    end_pod,
    events_of,
    fill_nodes,
    metric,
    node_of,
    nodes_bound,
    overcommitted,
    profile,
    terminating,
    wait_bound,
    wait_metric,
    wait_nominated,
    wait_refused,
)

pytestmark = [pytest.mark.controlplane, pytest.mark.usefixtures("priority_classes")]


def _wait_victims(client: ApiClient, namespace: str, count: int) -> dict[str, Object]:
    def enough() -> dict[str, Object] | None:
        found = terminating(client, namespace)
        return found if len(found) >= count else None

    return wait_until(enough, f"{count} victims to be terminating", timeout_seconds=30.0)


def test_victims_are_told_and_get_their_grace_and_the_preemptor_binds_after_the_last_one_is_gone(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    low = fill_nodes(client, namespace, "n1", pods=2)
    before = metric(bayplan, "scheduler_preemption_victims_sum")
    created = client.create("pods", pod_of_class("high", namespace, "high", "2"))
    victims = _wait_victims(client, namespace, 2)
    assert set(victims) == set(low)
    # Whoever sees a victim end sees for whom: the nomination was written first, together with the condition.
    waiting = client.get("pods", "high", namespace)
    assert waiting["status"]["nominatedNodeName"] == "n1"
    assert condition_of(waiting)["reason"] == "Unschedulable"
    for victim in victims.values():
        assert victim["metadata"]["deletionGracePeriodSeconds"] == 30
        said = next(c for c in victim["status"]["conditions"] if c["type"] == "DisruptionTarget")
        assert (said["status"], said["reason"]) == ("True", "PreemptionByScheduler")
        assert said["message"] == "bayplan: preempting to accommodate a higher priority pod"
    event = wait_until(
        lambda: next(iter(events_of(client, namespace, low[0], "Preempted")), None), "the victim's Event"
    )
    assert (event["type"], event["action"]) == ("Normal", "Preempting")
    assert event["note"] == f"Preempted by pod {created['metadata']['uid']} on node n1"

    # Pods of other priorities bind meanwhile.
    client.create("nodes", node("n2", cpu="1"))
    client.create("pods", pod_of_class("other", namespace, "low"))
    assert wait_bound(client, namespace, ["other"]) == {"other": "n2"}
    end_pod(client, namespace, low[0])
    client.create("pods", pod_of_class("another", namespace, "low"))
    wait_refused(client, namespace, "another")
    assert node_of(client, namespace, "high") == ""
    assert set(terminating(client, namespace)) == {low[1]}

    end_pod(client, namespace, low[1])
    assert wait_bound(client, namespace, ["high"]) == {"high": "n1"}
    assert "nominatedNodeName" not in client.get("pods", "high", namespace)["status"]
    # One text of all metrics serves a second.
    wait_metric(bayplan, before + 2, "scheduler_preemption_victims_sum")


def test_a_restart_in_the_middle_of_a_preemption_keeps_the_nomination_and_takes_no_more_victims(
    client: ApiClient, namespace: str, run_bayplan: RunBayplan
) -> None:
    # Under a name of its own: the scheduler of the other tests would do the killed one's work.
    ours = configuration(profile("restarted"))
    low = fill_nodes(client, namespace, "n1", "n2", "n3")
    high = client.create("pods", pod_of_class("high", namespace, "high", scheduler="restarted"))
    with PodRecorder(client) as recorder:
        first = run_bayplan(ours)
        (victim,) = _wait_victims(client, namespace, 1)
        wait_nominated(client, namespace, "high", victim.split("-")[1])
        first.kill()
        first.wait(10.0)

        second = run_bayplan(ours)
        # A pod of its own priority sees that the room is spoken for and makes room elsewhere.
        peer = client.create("pods", pod_of_class("peer", namespace, "high", scheduler="restarted"))
        victims = set(_wait_victims(client, namespace, 2))
        assert len(victims) == 2
        for name in low:
            if name in victims:
                end_pod(client, namespace, name)
        bound = wait_bound(client, namespace, ["high", "peer"])
        assert bound["high"] == victim.split("-")[1]
        assert {f"low-{name}-0" for name in bound.values()} == victims
        recorder.catch_up()
        assert_each_bound_once(recorder, [one["metadata"]["uid"] for one in (high, peer)])
    assert set(low) - victims <= nodes_bound(client, namespace).keys()
    assert not terminating(client, namespace)
    assert_alive_without_a_traceback(second)


def test_a_higher_pod_may_take_the_node_and_the_lower_ones_nomination_is_cleared(
    client: ApiClient, namespace: str, bayplan: BayplanProcess, create_class: CreateClass
) -> None:
    create_class("middle", 500)
    lows = fill_nodes(client, namespace, "n1", pods=2)
    client.create("pods", pod_of_class("middle", namespace, "middle"))
    _wait_victims(client, namespace, 1)
    wait_nominated(client, namespace, "middle", "n1")
    # It needs the other pod's room as well: where all victims end already, no nomination is taken back.
    client.create("pods", pod_of_class("high", namespace, "high", cpu="2"))
    wait_nominated(client, namespace, "high", "n1")
    wait_nominated(client, namespace, "middle", "")
    for low in lows:
        end_pod(client, namespace, low)
    assert wait_bound(client, namespace, ["high"]) == {"high": "n1"}
    assert node_of(client, namespace, "middle") == ""


def test_a_nomination_to_a_node_that_is_deleted_is_taken_back(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    fill_nodes(client, namespace, "n1")
    client.create("pods", pod_of_class("high", namespace, "high"))
    wait_nominated(client, namespace, "high", "n1")
    client.delete("nodes", "n1")
    wait_nominated(client, namespace, "high", "")
    client.create("nodes", node("n2", cpu="1"))
    assert wait_bound(client, namespace, ["high"]) == {"high": "n2"}


def test_room_nominated_to_another_schedulers_pod_is_left_to_it(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    client.create("pods", pod_of_class("theirs", namespace, "high", scheduler="another"))
    client.patch("pods", "theirs", {"status": {"nominatedNodeName": "n1"}}, namespace=namespace, subresource="status")
    # The watch of such pods is another than that of nodes: give it a head start.
    wait_until(
        lambda: metric(bayplan, "scheduler_event_handling_duration_seconds_count", event="NominatedPodAdd") > 0,
        "the nomination to be seen",
    )
    client.create("nodes", node("n1", cpu="1"))
    client.create("pods", pod_of_class("ours", namespace, "low"))
    wait_refused(client, namespace, "ours")
    client.delete("pods", "theirs", namespace=namespace, grace_seconds=0)
    assert wait_bound(client, namespace, ["ours"]) == {"ours": "n1"}


def test_many_preemptors_take_exactly_the_victims_they_need_and_all_bind_once(
    client: ApiClient, namespace: str, bayplan: BayplanProcess
) -> None:
    low = fill_nodes(client, namespace, *(f"n{index}" for index in range(20)), pods=2)
    high = client.create_all("pods", [pod_of_class(f"high-{index}", namespace, "high", "2") for index in range(15)])
    ended: set[str] = set()

    def all_bound() -> bool:
        for name in terminating(client, namespace):
            ended.add(name)
            end_pod(client, namespace, name)
        return sum(name.startswith("high-") for name in nodes_bound(client, namespace)) == len(high)

    with PodRecorder(client) as recorder:
        wait_until(all_bound, "all preemptors to be bound", timeout_seconds=60.0)
        recorder.catch_up()
        assert_each_bound_once(recorder, [one["metadata"]["uid"] for one in high])
    assert len(ended) == 2 * len(high)
    assert set(low) - ended <= nodes_bound(client, namespace).keys()
    assert overcommitted(client) == {}
