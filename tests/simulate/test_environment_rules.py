"""What the API server refuses of a pod's surroundings and of claims, in its words."""

import pytest
from tests.simulate.field_errors import CLAIM, CONTAINER, errors, errors_of_pod

from bayplan.simulate.validation import published_errors

REFUSED = [
    (
        {"dnsPolicy": "None"},
        "dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when `dnsPolicy` is None",
    ),
    (
        {"hostPID": True, "shareProcessNamespace": True},
        "shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled",
    ),
    ({"os": {"name": "beos"}}, 'os: Unsupported value: "beos": supported values: "linux", "windows"'),
    ({"ephemeralContainers": [{"name": "e"}]}, "ephemeralContainers: Forbidden: cannot be set on create"),
]
TAKEN = [
    {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["10.0.0.1"]}},
    {"hostPID": True, "shareProcessNamespace": False},
    {"os": {"name": "linux"}, "ephemeralContainers": []},
]
SEVERAL = {**CLAIM, "accessModes": ["ReadWriteOnce", "ReadWriteOncePod"]}


@pytest.mark.parametrize(("spec", "message"), REFUSED, ids=str)
def test_a_pod_whose_surroundings_contradict_themselves_is_refused(spec, message):
    assert errors_of_pod(**spec) == [f"spec.{message}"]


@pytest.mark.parametrize("spec", TAKEN, ids=str)
def test_a_pod_whose_surroundings_go_together_is_taken(spec):
    assert errors_of_pod(**spec) == []


@pytest.mark.parametrize("kind", ["PersistentVolumeClaim", "PersistentVolume"])
def test_a_volume_for_one_pod_has_no_other_access_mode(kind):
    spec = (
        SEVERAL
        if kind == "PersistentVolumeClaim"
        else {"accessModes": SEVERAL["accessModes"], "capacity": {"storage": 1}}
    )
    refusal = "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"
    assert errors("v1", kind, spec) == [refusal]
    assert errors("v1", kind, {**spec, "accessModes": ["ReadWriteOncePod"]}) == []


def test_keys_of_annotations_are_names_of_any_case():
    def told(**annotations):
        made = {"metadata": {"name": "x", "annotations": annotations}, "spec": {"containers": [CONTAINER]}}
        return [str(each) for each in published_errors("v1", "Pod", {"apiVersion": "v1", "kind": "Pod", **made})]

    assert told(**{"Example.com/Owner": "any value", "b": ""}) == []
    (error,) = told(**{"a b": "c"})
    assert error.startswith('metadata.annotations["a b"]: Invalid value: "a b": name part must consist of')
