import pytest

from bayplan.api.kinds import RESOURCES, resource_named, resource_of
from bayplan.api.objects import Pod
from bayplan.api.storage_objects import CSIStorageCapacity
from bayplan.api.workload_objects import ReplicaSet, Service


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
    assert resource_named(api_version, kind.__name__) is resource


def test_every_kind_and_path_stands_once():
    assert len({resource.type for resource in RESOURCES}) == len(RESOURCES)
    assert len({resource.path for resource in RESOURCES}) == len(RESOURCES)


def test_only_core_kinds_are_known_without_a_version_and_no_other_group_is_taken_for_them():
    assert resource_named("", "Service") is resource_of(Service)
    assert resource_named("", "ReplicaSet") is None
    assert resource_named("serving.knative.dev/v1", "Service") is None


def test_a_kind_outside_the_table_is_named():
    with pytest.raises(LookupError, match=r"kind Pod is not known to bayplan\.api\.kinds"):
        resource_of(Pod)
