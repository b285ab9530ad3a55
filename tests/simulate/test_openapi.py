"""What Kubernetes' published document says of objects in files."""

from importlib.resources import files

import msgspec
import pytest

from bayplan.simulate.validation import published_errors


@pytest.mark.parametrize(("kind", "group"), [("Deployment", "apps"), ("Job", "batch")])
def test_a_missing_api_version_is_what_is_said_of_kinds_of_a_group(kind, group):
    (error,) = published_errors("", kind, {"kind": kind})
    assert str(error) == f'apiVersion: Required value: kind "{kind}" is none of v1'
    (error,) = published_errors("v1", kind, {"apiVersion": "v1", "kind": kind})
    assert str(error) == f'kind: no matches for kind "{kind}" in version "v1"'


@pytest.mark.parametrize(
    ("api_version", "spec", "said"),
    [
        ("scheduling.k8s.io/v1beta1", {"schedulingPolicy": {"gang": {"minCount": 4}}}, []),
        ("scheduling.k8s.io/v1beta1", {"schedulingPolicy": {"gang": {"minimum": 4}}}, ["minimum"]),
        ("scheduling.x-k8s.io/v1alpha1", {"minMember": 4}, []),
        ("scheduling.x-k8s.io/v1alpha1", {"minMembers": 4}, ["minMembers"]),
        ("scheduling.x-k8s.io/v1alpha1", {"minMember": "4"}, ["minMember"]),
        ("scheduling.x-k8s.io/v1alpha1", {"minResources": {"cpu": 64, "memory": "256Gi"}}, []),
        ("scheduling.x-k8s.io/v1alpha1", {"minResources": {"cpu": "lots"}}, ["minResources.cpu: not a quantity"]),
    ],
)
def test_pod_groups_of_both_kinds_are_checked(api_version, spec, said):
    value = {"apiVersion": api_version, "kind": "PodGroup", "metadata": {"name": "g"}, "spec": spec}
    errors = [str(each) for each in published_errors(api_version, "PodGroup", value)]
    assert [name for name in said if any(name in each for each in errors)] == said
    assert bool(errors) == bool(said)


def test_devices_and_claims_are_checked():
    asked = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "counts": 2}}]}}
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"}, "spec": asked}
    (error,) = published_errors("resource.k8s.io/v1", "ResourceClaim", claim)
    assert "spec.devices.requests[0].exactly.counts" in str(error)


def test_every_field_that_is_checked_has_a_type_in_the_document():
    def untyped(name, schema):
        if not schema.keys() & {"$ref", "type"} and schema.get("format") != "int-or-string":
            yield name
        for inner, each in schema.get("properties", {}).items():
            yield from untyped(f"{name}.{inner}", each)
        for key in schema.keys() & {"items", "additionalProperties"}:
            yield from untyped(f"{name}[]", schema[key])

    definitions = msgspec.json.decode((files("bayplan.simulate") / "openapi.json").read_bytes())["definitions"]
    # Of kinds that are not read the document has no more than names.
    checked = {name: schema for name, schema in definitions.items() if schema.keys() != {"kinds"}}
    assert not [each for name, schema in checked.items() for each in untyped(name, schema)]
