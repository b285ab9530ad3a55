"""What plugins look up gets the API server's defaults, and is refused as there."""

import pytest

from bayplan.api.kinds import resource_of
from bayplan.api.meta_objects import ObjectMeta
from bayplan.api.storage_objects import (
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    StorageClass,
    StorageMeta,
)
from bayplan.api.workload_objects import Namespace, Service
from bayplan.plugins.volumes.csi_migration import translate_volume
from bayplan.simulate.looked_up import looked_up
from bayplan.simulate.refusals import AdmissionError


def admitted(obj):
    return looked_up(obj, resource_of(type(obj)))


def test_what_plugins_look_up_gets_the_api_servers_defaults():
    service = admitted(Service(metadata=ObjectMeta(name="web")))
    assert (service.metadata.namespace, service.metadata.uid) == ("default", "file:services/default/web")
    volume = admitted(PersistentVolume(metadata=StorageMeta(name="pv", namespace="stray")))
    assert (volume.metadata.namespace, volume.metadata.uid) == ("", "file:persistentvolumes/pv")
    assert (volume.spec.volume_mode, volume.status.phase) == ("Filesystem", "Available")
    claim = admitted(PersistentVolumeClaim(metadata=StorageMeta(name="data")))
    assert (claim.spec.volume_mode, claim.spec.storage_class_name) == ("Filesystem", None)
    assert admitted(StorageClass(metadata=ObjectMeta(name="fast"))).volume_binding_mode == "Immediate"


def test_an_azure_disk_of_no_kind_is_a_shared_one_which_its_driver_does_not_support():
    spec = PersistentVolumeSpec(azure_disk={"diskURI": "d"})
    volume = admitted(PersistentVolume(metadata=StorageMeta(name="pv"), spec=spec))
    assert translate_volume(volume).problem == "kind(Shared) is not supported in csi migration"


def test_the_phase_of_a_volume_with_a_claim_is_not_made_up():
    spec = PersistentVolumeSpec(claim_ref=ObjectReference(name="data", namespace="default"))
    assert admitted(PersistentVolume(metadata=StorageMeta(name="pv"), spec=spec)).status.phase == ""


def test_a_namespace_carries_its_name_as_a_label():
    namespace = admitted(Namespace(metadata=ObjectMeta(name="shop", labels={"team": "a"})))
    assert namespace.metadata.labels == {"team": "a", "kubernetes.io/metadata.name": "shop"}


@pytest.mark.parametrize(
    "obj",
    [
        Service(metadata=ObjectMeta(name="web", namespace="shop", uid="1")),
        StorageClass(metadata=ObjectMeta(name="fast", uid="1"), volume_binding_mode="WaitForFirstConsumer"),
    ],
    ids=["service", "class"],
)
def test_what_comes_from_a_cluster_passes_unchanged(obj):
    assert admitted(obj) is obj


def test_a_namespace_name_the_api_server_refuses_is_refused():
    with pytest.raises(AdmissionError, match=r"^metadata\.namespace: 'A B' is not a valid name"):
        admitted(Service(metadata=ObjectMeta(name="web", namespace="A B")))
