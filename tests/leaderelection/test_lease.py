import json
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from msgspec.structs import replace

from bayplan.leaderelection.lease import (
    LeaseLock,
    LeaseRecord,
    new_lease,
    read_lease,
    read_leases,
    record_of_holder,
    released,
)

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
LOCK = LeaseLock("kube-system", "bayplan", ("bayplan", "packer"))
MARKS = {
    "labels": {"bayplan.io/leader-election": "true"},
    "annotations": {"bayplan.io/scheduler-names": "bayplan,packer"},
}


def test_its_paths_and_its_name():
    assert LOCK.collection == "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    assert LOCK.path == f"{LOCK.collection}/bayplan"
    assert str(LOCK) == "kube-system/bayplan"
    assert LeaseLock("a/b", "c?d").path == "/apis/coordination.k8s.io/v1/namespaces/a%2Fb/leases/c%3Fd"


def test_a_new_lease_has_kube_schedulers_fields_and_says_for_whose_pods_it_is():
    assert json.loads(new_lease(LOCK, record_of_holder("host_uuid", 15, NOON, transitions=0))) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "bayplan", "namespace": "kube-system", **MARKS},
        "spec": {
            "holderIdentity": "host_uuid",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-11-22T12:00:00.000000Z",
            "renewTime": "2026-11-22T12:00:00.000000Z",
            "leaseTransitions": 0,
        },
    }


def test_an_update_keeps_what_others_wrote():
    theirs = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "bayplan", "resourceVersion": "7", "labels": {"team": "a"}},
        "spec": {"holderIdentity": "old", "leaseDurationSeconds": 15, "strategy": "OldestEmulationVersion"},
    }
    lease = read_lease(json.dumps(theirs).encode())
    written = json.loads(lease.with_record(LOCK, record_of_holder("new", 15, NOON, transitions=3)))
    labels = {"team": "a", **MARKS["labels"]}
    assert written["metadata"] == {**theirs["metadata"], **MARKS, "labels": labels}
    assert written["spec"]["strategy"] == "OldestEmulationVersion"
    assert (written["spec"]["holderIdentity"], written["spec"]["leaseTransitions"]) == ("new", 3)
    assert lease.record.holder_identity == "old"


@pytest.mark.parametrize("spec", [None, {}, {"holderIdentity": None, "leaseDurationSeconds": None}])
def test_a_lease_that_says_nothing_names_nobody_and_is_no_release(spec):
    lease = read_lease(json.dumps({"metadata": {}, "spec": spec}).encode())
    assert lease.record == LeaseRecord()
    assert not lease.record.is_released
    assert json.loads(lease.with_record(LOCK, LeaseRecord("me")))["spec"]["holderIdentity"] == "me"


def test_what_is_released_is_nobodys_and_what_was_emptied_is_not():
    held = record_of_holder("me", 15, NOON, transitions=2)
    assert released(held, NOON).is_released
    assert released(held, NOON).lease_transitions == 2
    assert not held.is_released
    assert not LeaseRecord("", 15).is_released
    assert not LeaseRecord("", 1).is_released
    assert not replace(held, holder_identity="", lease_duration_seconds=1, acquire_time="").is_released


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b"<html>", b'{"metadata": 1}', b'{"metadata": {}, "spec": {"holderIdentity": 1}}']
)
def test_what_is_no_lease_is_refused(body):
    with pytest.raises(msgspec.DecodeError):
        read_lease(body)


def test_a_list_gives_each_lease_with_its_place_and_the_names_that_it_is_about():
    ours = json.loads(new_lease(LOCK, record_of_holder("me", 15, NOON, transitions=0)))
    theirs = {"metadata": {"name": "kube-scheduler", "namespace": "kube-system", "annotations": None}, "spec": {}}
    found = read_leases(json.dumps({"items": [ours, theirs]}).encode())
    assert [each.lock for each in found] == [LOCK, LeaseLock("kube-system", "kube-scheduler")]
    assert [each.record.holder_identity for each in found] == ["me", ""]


@pytest.mark.parametrize(
    ("record", "seconds_later", "is_live"),
    [
        (record_of_holder("me", 15, NOON, transitions=0), 14, True),
        (record_of_holder("me", 15, NOON, transitions=0), 16, False),
        (record_of_holder("", 15, NOON, transitions=0), 1, False),
        (LeaseRecord("me", 15), 1, False),
    ],
    ids=["renewed", "run out", "given up", "never renewed"],
)
def test_a_lease_is_live_while_its_holder_renews_it(record, seconds_later, is_live):
    lease = read_lease(new_lease(LOCK, record))
    assert lease.is_live(NOON + timedelta(seconds=seconds_later)) is is_live
