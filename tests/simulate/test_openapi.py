"""What Kubernetes' published document says of objects in files."""

import pytest

from bayplan.simulate.openapi import published_errors


@pytest.mark.parametrize(("kind", "group"), [("Deployment", "apps"), ("Job", "batch")])
def test_a_missing_api_version_is_what_is_said_of_kinds_of_a_group(kind, group):
    (error,) = published_errors("", kind, {"kind": kind})
    assert str(error) == f'apiVersion: Required value: kind "{kind}" is none of v1'
    (error,) = published_errors("v1", kind, {"apiVersion": "v1", "kind": kind})
    assert str(error) == f'kind: no matches for kind "{kind}" in version "v1"'
