"""What the soak creates, and what it knows of it."""

import json
from collections import Counter
from itertools import islice, pairwise

import pytest

from e2e.soak.__main__ import options_of, plan_of
from e2e.soak.kubelets import running_status
from e2e.soak.ledger import Fate, Tracked
from e2e.soak.plan import Plan
from e2e.soak.room import Amounts, Room, amounts_of, milli_cpu, whole_bytes
from e2e.soak.seen import pod_decoder
from e2e.soak.workload import FILLER, HOSTILE, PREEMPTOR, SPREAD, Workload, allocatable, hostile_cases, soak_nodes

PLAN = Plan(nodes=5)


def test_every_kind_comes_at_its_own_rate() -> None:
    seconds = 100
    kinds = Counter(each.kind for each in islice(Workload(PLAN), int(PLAN.rate) * seconds))
    assert abs(kinds[HOSTILE] - PLAN.hostile_rate * seconds) <= 1
    assert abs(kinds[FILLER] - PLAN.filler_rate * seconds) <= 1
    assert abs(kinds[PREEMPTOR] - PLAN.preemptor_rate * seconds) <= 1
    assert kinds[SPREAD] > 900


@pytest.mark.parametrize(("minutes", "last"), [(4.0, 215), (60.0, 1800)])
def test_the_api_server_restarts_before_memory_is_judged_and_once_more(minutes: float, last: float) -> None:
    plan = Plan(minutes=minutes)
    first, second = plan.restarts_at
    assert first < plan.settle_minutes * 60 < second < plan.seconds
    assert second == last


@pytest.mark.parametrize(("minutes", "rounds"), [(4.0, 3), (60.0, 20)])
def test_a_webhook_fails_in_each_way_and_never_while_the_api_server_restarts(minutes: float, rounds: int) -> None:
    plan = Plan(minutes=minutes)
    spans = [(began, began + 2 * plan.bad_seconds) for began in plan.bad_rounds_at]
    assert len(spans) >= rounds
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert spans[-1][1] <= plan.seconds
    assert not [span for span in spans for moment in plan.restarts_at if span[0] - 10 < moment < span[1]]
    assert Plan(bad_pods=0).bad_rounds_at == ()


def test_names_never_repeat_and_every_odd_pod_comes() -> None:
    creations = list(islice(Workload(PLAN), 20_000))
    assert len({each.name for each in creations}) == len(creations)
    odd = {each.document["metadata"]["annotations"]["case"] for each in creations if each.kind == HOSTILE}
    assert odd == set(hostile_cases())
    assert len(odd) > 60


def test_nodes_have_what_the_room_is_counted_with() -> None:
    for document in soak_nodes(PLAN):
        amounts = document["status"]["allocatable"]
        expected = Amounts(milli_cpu(amounts["cpu"]), whole_bytes(amounts["memory"]), int(amounts["pods"]))
        assert allocatable(document["metadata"]["name"]) == expected
    assert allocatable("no-such-node") is None


def test_amounts_are_exact_and_rounded_up() -> None:
    assert [milli_cpu(each) for each in ("100m", "1.5", "1n", "2")] == [100, 1500, 1, 2000]
    assert [whole_bytes(each) for each in ("500Mi", "1k", "1m")] == [500 << 20, 1000, 1]


def test_a_pod_counts_once_on_one_node() -> None:
    room = Room(lambda _: Amounts(100, 100, 2))
    room.put("a", "n1", Amounts(60, 10, 1))
    room.put("a", "n1", Amounts(70, 10, 1))
    assert room.free("n1") == Amounts(30, 90, 1)
    room.put("a", "n2", Amounts(70, 10, 1))
    assert room.free("n1") == Amounts(100, 100, 2)
    assert room.nodes() == ["n2"]
    room.put("b", "n2", Amounts(31, 10, 1))
    assert room.is_overfull("n2")
    room.remove("b")
    assert not room.is_overfull("n2")


def test_a_pod_that_its_kubelet_has_reported_on_needs_no_further_report() -> None:
    document = {
        "metadata": {"name": "a", "uid": "u"},
        "spec": {"nodeName": "n1", "containers": [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}]},
    }
    pod = pod_decoder.decode(json.dumps(document))
    assert not pod.is_reported
    tracked = Tracked("a", "plain", Fate.BINDS, 0.0, uid="u", requests=(("main", (("cpu", "100m"),)),))
    reported = pod_decoder.decode(json.dumps(document | {"status": running_status(tracked)["status"]}))
    assert reported.is_reported
    assert amounts_of(reported) == Amounts(100, 0, 1)


def test_the_command_line_names_what_differs_from_the_plan_of_an_hour() -> None:
    assert plan_of(options_of([])) == Plan()
    arguments = ["--minutes", "5", "--nodes", "7", "--rate", "8", "--lifetime", "9", "--instances", "1"]
    arguments += ["--bad-pods", "0"]
    assert plan_of(options_of(arguments)) == Plan(minutes=5, nodes=7, rate=8, lifetime=9, instances=1, bad_pods=0)
