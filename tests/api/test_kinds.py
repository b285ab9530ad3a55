from pathlib import Path

import pytest
import yaml

from bayplan.api.kinds import CRD_POD_GROUPS, NODES, POD_GROUPS, PODS, RESOURCES, resource_of
from bayplan.api.objects import Pod
from bayplan.api.storage_objects import CSIStorageCapacity
from bayplan.api.workload_objects import ReplicaSet, Service

MANIFESTS = Path(__file__).parents[2] / "manifests"


@pytest.mark.parametrize(
    ("kind", "api_version", "path"),
    [
        (Service, "v1", "/api/v1/services"),
        (ReplicaSet, "apps/v1", "/apis/apps/v1/replicasets"),
        (CSIStorageCapacity, "storage.k8s.io/v1", "/apis/storage.k8s.io/v1/csistoragecapacities"),
    ],
)
def test_a_kind_is_listed_across_namespaces_under_its_group_and_version(kind, api_version, path):
    resource = resource_of(kind)
    assert (resource.api_version, resource.path) == (api_version, path)


def test_every_kind_and_path_stands_once():
    assert len({resource.type for resource in RESOURCES}) == len(RESOURCES)
    assert len({resource.path for resource in RESOURCES}) == len(RESOURCES)


@pytest.mark.parametrize("resource", [NODES, PODS, POD_GROUPS, CRD_POD_GROUPS, *RESOURCES], ids=lambda each: each.path)
def test_what_grants_a_kind_is_the_one_part_of_the_manifests_that_does(resource):
    granting = {
        path.parent.relative_to(MANIFESTS).as_posix()
        for path in [MANIFESTS / "base" / "rbac.yaml", *(MANIFESTS / "components").rglob("rbac.yaml")]
        for role in yaml.safe_load_all(path.read_text())
        if role["kind"] == "ClusterRole"
        for rule in role["rules"]
        if resource.group in rule.get("apiGroups", ()) and resource.plural in rule["resources"]
        if {"list", "watch"} <= set(rule["verbs"])
    }
    assert granting == {resource.granted_by}


def test_groups_of_pods_are_of_two_kinds_neither_of_which_has_a_lister():
    assert POD_GROUPS.path == "/apis/scheduling.k8s.io/v1beta1/podgroups"
    assert CRD_POD_GROUPS.path == "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"
    assert {POD_GROUPS, CRD_POD_GROUPS}.isdisjoint(RESOURCES)


def test_a_kind_outside_the_table_is_named():
    with pytest.raises(LookupError, match=r"kind Pod is not known to bayplan\.api\.kinds"):
        resource_of(Pod)
