"""Rights that the configuration needs are asked for one by one, and those that are missing come with their manifest."""

import asyncio

import msgspec
import pytest
from tests.doctor.patients import configuration

from bayplan.doctor.surroundings import missing_rights

CLAIMS = "resourceclaims.resource.k8s.io"


@pytest.mark.parametrize(
    ("refused", "about", "manifest"),
    [
        ({"resource": "pods", "subresource": "binding"}, "create pods/binding", "base"),
        ({"verb": "delete", "resource": "pods"}, "delete pods", "components/preemption"),
        ({"subresource": "binding", "verb": "patch"}, f"patch {CLAIMS}/binding", "components/devices"),
        ({"verb": "update", "resource": "resourceclaims"}, f"update {CLAIMS}", "components/devices"),
        ({"verb": "create", "resource": "resourceclaims"}, f"create {CLAIMS}", "components/devices"),
        ({"verb": "delete", "resource": "resourceclaims"}, f"delete {CLAIMS}", "components/devices"),
    ],
)
def test_rights_that_are_missing(refused, about, manifest):
    async def ask(body):
        assert msgspec.json.decode(body)["kind"] == "SelfSubjectAccessReview"
        wanted = msgspec.json.decode(body)["spec"]["resourceAttributes"]
        return msgspec.json.encode({"status": {"allowed": not refused.items() <= wanted.items()}})

    (finding,) = asyncio.run(missing_rights(configuration(), ask))
    assert (finding.check, finding.about) == ("rights", about)
    assert finding.fix == f"kubectl apply -k manifests/{manifest}"
