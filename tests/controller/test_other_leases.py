"""What a scheduler does that was not told to contend: it looks for the Leases of others that schedule the same pods."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.faults.faults import Refuse

from bayplan.config.connections import LeaderElection
from bayplan.config.load import default_configuration
from bayplan.leaderelection.lease import LeaseLock, new_lease, record_of_holder

LEASES = "/apis/coordination.k8s.io/v1/leases"
KEY = "kube-system/bayplan"


def writes(cluster):
    return [seen for seen in cluster.server.requests if seen.method != "GET"]


SHORT = {
    "lease_duration": timedelta(seconds=3),
    "renew_deadline": timedelta(seconds=2),
    "retry_period": timedelta(seconds=0.2),
}
"""For those that wait until a Lease may be taken."""


def put_installation(server, *names, holder="installed_1", seconds=15, renewed=None):
    """Another scheduler's Lease in a namespace of its own."""
    record = record_of_holder(holder, seconds, renewed or datetime.now(UTC), transitions=0)
    server.put(LEASES, json.loads(new_lease(LeaseLock("bayplan-system", "bayplan", names), record)))


def start_heeding(cluster, elects=None, **timing):
    """A process with a pod to bind that looks for other schedulers' Leases."""
    configuration = replace(default_configuration(), leader_election=LeaderElection(leader_elect=elects, **timing))
    cluster.start("n1", pods=["a"], configuration=configuration, heeds_other_leases=True)


async def test_who_was_not_told_whether_to_contend_stands_by_for_the_holder_of_the_lease_that_it_finds(cluster, caplog):
    caplog.set_level("INFO")
    put_installation(cluster.server, "bayplan")
    start_heeding(cluster)
    await cluster.until(lambda: "the lease is held by another" in caplog.text)
    assert "found the lease of a scheduler of the same pods lease=bayplan-system/bayplan" in caplog.messages
    assert "the lease is held by another lease=bayplan-system/bayplan holder='installed_1'" in caplog.messages
    await cluster.until_ready()
    assert (writes(cluster), cluster.node_of("a")) == ([], None)


async def test_of_several_leases_about_the_same_pods_the_one_renewed_last_counts(cluster, caplog):
    caplog.set_level("INFO")
    old = record_of_holder("old", 15, datetime(2026, 1, 1, tzinfo=UTC), transitions=0)
    cluster.server.put(LEASES, json.loads(new_lease(LeaseLock("attic", "bayplan", ("bayplan",)), old)))
    put_installation(cluster.server, "bayplan", "other")
    start_heeding(cluster)
    await cluster.until(lambda: "the lease is held by another" in caplog.text)
    assert "the lease is held by another lease=bayplan-system/bayplan holder='installed_1'" in caplog.messages


async def test_where_there_is_no_such_lease_it_takes_its_own_and_says_for_whose_pods(cluster):
    put_installation(cluster.server, "another-scheduler")
    start_heeding(cluster)
    await cluster.until(lambda: cluster.node_of("a") == "n1")
    metadata = cluster.server.objects[LEASES][KEY]["metadata"]
    assert metadata["annotations"] == {"bayplan.io/scheduler-names": "bayplan"}
    _, text = await cluster.get("/metrics")
    assert 'leader_election_master_status{name="bayplan"} 1.0' in text


@pytest.mark.parametrize("path", ["leases", "leases/bayplan"])
async def test_a_role_without_its_lease_has_who_was_not_told_to_contend_refused_in_one_line(cluster, caplog, path):
    cluster.server.inject(Refuse(403, "Forbidden"), path=path, times=10_000)
    start_heeding(cluster)
    assert await cluster.exit_code() == 2
    (told,) = (line for line in caplog.messages if "lease" in line)
    assert told.startswith(
        "refused: it cannot be known whether another schedules the same pods, and --leader-elect=false schedules "
        "all the same: permission missing, grant get, create and update on leases in coordination.k8s.io, "
    )
    assert writes(cluster) == []


async def test_a_role_without_leases_has_who_was_told_not_to_contend_schedule_without_a_warning(cluster, caplog):
    cluster.server.inject(Refuse(403, "Forbidden"), path="leases", times=10_000)
    start_heeding(cluster, elects=False)
    await cluster.until(lambda: cluster.node_of("a") == "n1")
    assert not [each for each in caplog.records if "lease" in each.message and each.levelname == "WARNING"]


async def test_who_may_not_list_leases_but_read_its_own_contends_for_that(cluster):
    cluster.server.inject(Refuse(403, "Forbidden"), path="leases", times=3)
    start_heeding(cluster)
    await cluster.until(lambda: cluster.node_of("a") == "n1")
    assert cluster.server.objects[LEASES][KEY]["spec"]["holderIdentity"]


async def test_leases_that_cannot_be_listed_for_now_are_asked_for_again_and_that_is_said_once(cluster, caplog):
    put_installation(cluster.server, "bayplan", holder="", seconds=1, renewed=datetime(2026, 1, 1, tzinfo=UTC))
    cluster.server.inject(Refuse(500), path="leases", times=3)
    start_heeding(cluster, **SHORT)
    await cluster.until(lambda: cluster.node_of("a") == "n1")
    assert caplog.text.count("the leases of other schedulers were not read problem=status 500") == 1
    assert KEY not in cluster.server.objects[LEASES]


async def test_who_is_told_not_to_contend_is_refused_while_another_leads_for_the_same_pods(cluster, caplog):
    put_installation(cluster.server, "bayplan", "other")
    start_heeding(cluster, elects=False)
    assert await cluster.exit_code() == 2
    assert caplog.messages[-1] == (
        "refused: 'installed_1' holds the lease bayplan-system/bayplan and schedules pods of bayplan, other: "
        "leave --leader-elect=false out to stand by, or add --ignore-other-leases to schedule them, too"
    )
    assert writes(cluster) == []


async def test_who_is_told_not_to_contend_schedules_where_the_others_lease_ran_out(cluster):
    put_installation(cluster.server, "bayplan", renewed=datetime(2026, 1, 1, tzinfo=UTC))
    start_heeding(cluster, elects=False)
    await cluster.until(lambda: cluster.node_of("a") == "n1")
    assert {seen.method for seen in cluster.server.requests if "leases" in seen.path} == {"GET"}


async def test_who_is_told_to_contend_says_at_once_that_another_leads_for_the_same_pods(cluster, caplog):
    put_installation(cluster.server, "bayplan", "other", renewed=datetime.now(UTC) + timedelta(hours=1))
    start_heeding(cluster, elects=True)
    await cluster.until(lambda: cluster.node_of("a") == "n1")
    (told,) = (each.getMessage() for each in caplog.records if "installed_1" in each.getMessage())
    assert told == (
        "'installed_1' holds the lease bayplan-system/bayplan and schedules pods of bayplan, other: both schedule them "
        "once this process holds kube-system/bayplan; leave --leader-elect out to stand by, or add "
        "--ignore-other-leases if that is meant"
    )


@pytest.mark.parametrize("renewed", [datetime(2026, 1, 1, tzinfo=UTC), None])
async def test_who_is_told_to_contend_says_nothing_of_its_own_lease_nor_of_one_that_ran_out(cluster, caplog, renewed):
    if renewed is None:
        record = record_of_holder("another", 1, datetime.now(UTC), transitions=0)
        cluster.server.put(LEASES, json.loads(new_lease(LeaseLock("kube-system", "bayplan", ("bayplan",)), record)))
    else:
        put_installation(cluster.server, "bayplan", renewed=renewed)
    start_heeding(cluster, elects=True, **SHORT)
    await cluster.until(lambda: cluster.node_of("a") == "n1")
    assert "both schedule them" not in caplog.text


@pytest.mark.parametrize("elects", [None, True])
async def test_a_role_without_its_lease_is_told_before_all_kinds_are_listed(cluster, caplog, elects):
    cluster.server.inject(Refuse(403, "Forbidden"), path="leases", times=10_000)
    cluster.server.inject(Refuse(503), path="/api/v1/nodes", times=10_000)
    start_heeding(cluster, elects=elects)
    if elects is None:
        assert await cluster.exit_code() == 2
    else:
        await cluster.until(lambda: "the lease was not read or written" in caplog.text)
    assert "permission missing, grant get, create and update on leases" in caplog.text
    assert not any("watch" in seen.query for seen in cluster.server.requests if seen.path == "/api/v1/nodes")
    assert writes(cluster) == []


async def test_an_api_server_that_refuses_its_lease_for_a_moment_is_asked_again(cluster):
    cluster.server.inject(Refuse(403, "Forbidden"), path="leases", times=4)
    start_heeding(cluster)
    await cluster.until(lambda: cluster.node_of("a") == "n1")


async def test_one_that_came_while_kinds_were_listed_is_seen_before_the_first_decision(cluster, caplog):
    cluster.server.inject(Refuse(503), path="/api/v1/nodes", times=3)
    start_heeding(cluster, elects=False)
    await cluster.until(lambda: any("leases" in seen.path for seen in cluster.server.requests))
    put_installation(cluster.server, "bayplan", renewed=datetime.now(UTC) + timedelta(hours=1))
    assert await cluster.exit_code() == 2
    assert "'installed_1' holds the lease bayplan-system/bayplan" in caplog.text
    assert writes(cluster) == []


async def test_who_stood_by_for_a_lease_that_is_gone_before_the_first_decision_takes_its_own(cluster, caplog):
    caplog.set_level("INFO")
    cluster.server.inject(Refuse(503), path="/api/v1/nodes", times=3)
    put_installation(cluster.server, "bayplan", renewed=datetime(2026, 1, 1, tzinfo=UTC))
    start_heeding(cluster)
    await cluster.until(lambda: "found the lease of a scheduler of the same pods" in caplog.text)
    cluster.server.delete(LEASES, "bayplan-system/bayplan")
    await cluster.until(lambda: cluster.node_of("a") == "n1")
    assert list(cluster.server.objects[LEASES]) == [KEY]
