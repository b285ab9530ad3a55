"""What pods and PodGroup objects say, of either kind and of any hostile value."""

import msgspec
import pytest
from tests.builders import make_pod

from bayplan.api.workload_objects import PodGroup as PodGroupObject
from bayplan.cache.group_members import POD_GROUP_LABEL, GroupSource, PodGroupKey, group_key
from bayplan.groups.pod_groups import PodGroup, read_pod_group

NATIVE, CRD = GroupSource.NATIVE, GroupSource.CRD
CONDITION = {"type": "PodGroupInitiallyScheduled", "status": "True", "reason": "Scheduled", "message": "m"}


def read(source: GroupSource, spec: dict[str, object] | None = None, **others: object) -> PodGroup:
    raw = {"metadata": {"name": "g", "namespace": "ns", "uid": "u"}, "spec": spec or {}, **others}
    return read_pod_group(msgspec.json.decode(msgspec.json.encode(raw), type=PodGroupObject), source)


def test_a_pod_names_a_group_of_its_own_namespace_by_its_spec_or_by_its_label():
    assert group_key(make_pod(namespace="ns")) is None
    assert group_key(make_pod(namespace="ns", labels={"app": "web"})) is None
    assert group_key(make_pod(namespace="ns", group="g")) == PodGroupKey(NATIVE, "ns", "g")
    assert group_key(make_pod(namespace="ns", labels={POD_GROUP_LABEL: "g"})) == PodGroupKey(CRD, "ns", "g")


def test_the_native_group_wins_where_a_pod_names_both():
    assert group_key(make_pod(group="own", labels={POD_GROUP_LABEL: "other"})) == PodGroupKey(NATIVE, "default", "own")


def test_an_empty_name_names_no_group_and_one_that_no_object_can_have_is_a_name_all_the_same():
    assert group_key(make_pod(group="", labels={POD_GROUP_LABEL: ""})) is None
    assert group_key(make_pod(group="", labels={POD_GROUP_LABEL: "g"})) == PodGroupKey(CRD, "default", "g")
    assert group_key(make_pod(labels={POD_GROUP_LABEL: "No_Name.."})) == PodGroupKey(CRD, "default", "No_Name..")


def test_a_key_is_told_by_namespace_and_name():
    assert str(PodGroupKey(NATIVE, "ns", "g")) == "ns/g"


@pytest.mark.parametrize("least", [1, 4, 2**31 - 1])
def test_a_native_gang_starts_with_its_min_count(least):
    group = read(NATIVE, {"schedulingPolicy": {"gang": {"minCount": least}}})
    assert group.least == least


@pytest.mark.parametrize("spec", [{}, {"schedulingPolicy": {}}, {"schedulingPolicy": {"basic": {}}}])
def test_a_native_group_that_is_no_gang_starts_with_any_of_its_pods(spec):
    group = read(NATIVE, spec)
    assert group.least == 1


@pytest.mark.parametrize(
    ("min_member", "least"),
    [(None, 1), (0, 1), (-5, 1), (1, 1), (2, 2), (2**31 - 1, 2**31 - 1)],
)
def test_a_group_of_the_crd_starts_with_its_min_member_which_may_be_anything(min_member, least):
    group = read(CRD, {} if min_member is None else {"minMember": min_member})
    assert group.least == least


def test_only_a_native_group_has_a_priority_of_its_own():
    assert read(NATIVE).priority == 0
    assert read(NATIVE, {"priority": 7}).priority == 7
    assert read(CRD, {"priority": 7}).priority is None
    assert (read(NATIVE).is_native, read(CRD).is_native) == (True, False)


def test_the_rest_of_a_native_group_is_read():
    spec = {
        "preemptionPolicy": "Never",
        "schedulingConstraints": {"topology": [{"key": "rack"}]},
        "disruptionMode": {"all": {}},
    }
    group = read(NATIVE, spec, status={"conditions": [{"type": "DisruptionTarget", "status": "True"}, CONDITION]})
    assert (group.preemption_policy, group.topology_key, group.evicted_as_one) == ("Never", "rack", True)
    assert group.condition is not None
    assert (group.condition.status, group.condition.reason) == ("True", "Scheduled")


def test_a_group_that_says_nothing_may_stand_anywhere_and_is_evicted_pod_by_pod():
    for spec in ({}, {"schedulingConstraints": {"topology": []}, "disruptionMode": {"single": {}}}):
        group = read(NATIVE, spec)
        assert (group.topology_key, group.evicted_as_one, group.condition) == ("", False, None)


def test_what_the_crds_own_controller_writes_is_passed_over():
    status = {"phase": "Running", "running": 3, "occupiedBy": "x/y"}
    assert read(CRD, {"minMember": 3, "minResources": {"cpu": "2"}}, status=status).min_resources == {"cpu": "2"}


def test_a_group_being_deleted_is_still_read():
    meta = {"name": "g", "namespace": "ns", "deletionTimestamp": "2026-01-01T00:00:00Z", "generation": 3}
    group = read(NATIVE, metadata=meta)
    assert (group.is_terminating, group.generation) == (True, 3)
