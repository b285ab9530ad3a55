"""What the soak's witness makes of what it sees."""

import pytest

from e2e.soak.ledger import Fate, Ledger
from e2e.soak.room import Amounts
from e2e.soak.seen import SeenPod, pod_decoder

LIFETIME = 60.0
ROOM = Amounts(cpu=1000, memory=1 << 30, pods=3)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(lambda name: ROOM if name.startswith("n") else None, lifetime=LIFETIME)


def seen(
    name: str, node: str = "", *, cpu: str = "100m", allocated: str = "", phase: str = "", ending: int = -1
) -> SeenPod:
    """A pod as the watch shows it; `ending` is the grace period of one that was told to end."""
    resources = f'{{"requests": {{"cpu": "{cpu}"}}}}'
    told = f', "deletionTimestamp": "x", "deletionGracePeriodSeconds": {ending}' if ending >= 0 else ""
    statuses = (
        f', "containerStatuses": [{{"name": "c", "allocatedResources": {{"cpu": "{allocated}"}}}}]' if allocated else ""
    )
    return pod_decoder.decode(
        f'{{"metadata": {{"name": "{name}", "uid": "uid-{name}"{told}}},'
        f' "spec": {{"nodeName": "{node}", "containers": [{{"name": "c", "resources": {resources}}}]}},'
        f' "status": {{"phase": "{phase}"{statuses}}}}}'
    )


def create(ledger: Ledger, name: str, *, fate: Fate = Fate.BINDS, at: float = 0.0, cpu: str = "100m") -> None:
    ledger.expect(name, "plain", fate, at)
    ledger.see("ADDED", seen(name, cpu=cpu), at)


def test_the_latency_of_a_pod_is_from_the_sending_of_its_creation_to_the_first_event_with_a_node(
    ledger: Ledger,
) -> None:
    ledger.expect("a", "plain", Fate.BINDS, 10.0)
    ledger.see("ADDED", seen("a"), 10.2)
    ledger.see("MODIFIED", seen("a", "n1"), 10.5)
    ledger.see("MODIFIED", seen("a", "n1", phase="Running"), 11.0)
    (latency,) = ledger.latencies
    assert (latency.kind, latency.sent) == ("plain", 10.0)
    assert latency.seconds == pytest.approx(0.5)
    assert ledger.counts == {"created": 1, "bound": 1}
    assert ledger.broken == []


def test_a_pod_on_two_nodes_breaks_the_promise(ledger: Ledger) -> None:
    create(ledger, "a")
    ledger.see("MODIFIED", seen("a", "n1"), 1.0)
    ledger.see("MODIFIED", seen("a", "n2"), 2.0)
    assert ledger.broken == ["a was on n1 and is on n2"]


def test_a_pod_that_can_be_on_no_node_and_is_breaks_the_promise(ledger: Ledger) -> None:
    create(ledger, "odd", fate=Fate.NEVER_BINDS)
    assert ledger.broken == []
    ledger.see("MODIFIED", seen("odd", "n1"), 1.0)
    assert ledger.broken == ["odd (plain) can be on no node and is on n1"]


def test_a_node_may_be_full_and_not_more_than_full_at_any_moment(ledger: Ledger) -> None:
    for name in "ab":
        create(ledger, name, cpu="500m")
        ledger.see("MODIFIED", seen(name, "n1", cpu="500m"), 1.0)
    assert ledger.broken == []
    create(ledger, "c", cpu="1m")
    ledger.see("MODIFIED", seen("c", "n1", cpu="1m"), 2.0)
    assert len(ledger.broken) == 1
    assert ledger.broken[0].startswith("n1 holds more than it has with c")


def test_room_comes_back_when_a_pod_is_gone_or_over(ledger: Ledger) -> None:
    for name, end in (("a", ("DELETED", "")), ("b", ("MODIFIED", "Failed")), ("c", ("MODIFIED", "Succeeded"))):
        create(ledger, name, cpu="1")
        ledger.see("MODIFIED", seen(name, "n1", cpu="1"), 1.0)
        ledger.see(end[0], seen(name, "n1", cpu="1", phase=end[1]), 2.0)
    assert ledger.broken == []


def test_a_pod_that_shrinks_takes_what_it_had_until_its_kubelet_has_said_so(ledger: Ledger) -> None:
    create(ledger, "a", cpu="1")
    ledger.see("MODIFIED", seen("a", "n1", cpu="1", allocated="1", phase="Running"), 1.0)
    assert ledger.to_report == {}
    ledger.see("MODIFIED", seen("a", "n1", cpu="400m", allocated="1", phase="Running"), 2.0)
    assert ledger.room.free("n1").cpu == 0
    assert list(ledger.to_report) == ["uid-a"]
    ledger.see("MODIFIED", seen("a", "n1", cpu="400m", allocated="400m", phase="Running"), 3.0)
    assert ledger.room.free("n1").cpu == 600
    assert ledger.to_report == {}


def test_what_is_deleted_by_nobody_here_was_preempted(ledger: Ledger) -> None:
    for name in ("mine", "victim"):
        create(ledger, name)
        ledger.see("MODIFIED", seen(name, "n1"), 1.0)
    ledger.pods["uid-mine"].is_deleted = True
    for name in ("mine", "victim"):
        ledger.see("MODIFIED", seen(name, "n1", ending=1), 2.0)
    assert set(ledger.to_end) == {"uid-mine", "uid-victim"}
    for name in ("mine", "victim"):
        ledger.see("DELETED", seen(name, "n1", ending=0), 3.0)
    assert (ledger.counts["preempted"], ledger.counts["deleted"]) == (1, 2)
    assert ledger.to_end == {}


def test_a_pod_that_must_be_bound_lives_from_its_bind_on_and_is_lost_without_one(ledger: Ledger) -> None:
    create(ledger, "bound")
    create(ledger, "lost")
    create(ledger, "odd", fate=Fate.NEVER_BINDS)
    ledger.see("MODIFIED", seen("bound", "n1"), 50.0)
    assert [each.name for each in ledger.expired(LIFETIME)] == ["odd"]
    assert [each.name for each in ledger.expired(10 * LIFETIME)] == ["bound"]
    assert ledger.expired(10 * LIFETIME) == []
    assert [each.name for each in ledger.lost()] == ["lost"]


def test_a_deletion_that_failed_is_due_again(ledger: Ledger) -> None:
    create(ledger, "a")
    ledger.see("MODIFIED", seen("a", "n1"), 0.0)
    (due,) = ledger.expired(LIFETIME)
    ledger.try_again(due, LIFETIME)
    assert ledger.expired(LIFETIME) == []
    assert ledger.expired(LIFETIME + 5) == [due]


def test_a_pod_that_may_wait_must_not_where_a_node_has_room(ledger: Ledger) -> None:
    create(ledger, "big", fate=Fate.MAY_WAIT, cpu="2")
    create(ledger, "small", fate=Fate.MAY_WAIT, cpu="600m")
    assert [each.name for each in ledger.waiting_that_fit(["n1"])] == ["small"]
    create(ledger, "there", cpu="500m")
    ledger.see("MODIFIED", seen("there", "n1", cpu="500m"), 1.0)
    assert ledger.waiting_that_fit(["n1"]) == []
    assert ledger.lost() == []


def test_a_list_after_a_gap_tells_what_went_and_what_was_bound(ledger: Ledger) -> None:
    for name in ("gone", "bound", "moved"):
        create(ledger, name)
    ledger.see("MODIFIED", seen("moved", "n1"), 1.0)
    ledger.replace([seen("bound", "n1"), seen("moved", "n2"), seen("a-stranger", "n1")], 5.0)
    assert set(ledger.pods) == {"uid-bound", "uid-moved"}
    assert ledger.unbound == {}
    assert ledger.broken == ["moved was on n1 and is on n2"]


def test_a_creation_that_was_refused_is_expected_no_more_and_one_in_doubt_is(ledger: Ledger) -> None:
    for name in ("refused", "in-doubt"):
        ledger.expect(name, "plain", Fate.BINDS, 0.0)
    ledger.refused("refused")
    ledger.replace([seen("refused"), seen("in-doubt")], 1.0)
    assert set(ledger.pods) == {"uid-in-doubt"}
