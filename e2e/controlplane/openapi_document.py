"""Cuts Kubernetes' published OpenAPI document to what simulations check files by: `make openapi`.

The API server of go.mod's version is asked, so that enumerations are those that it publishes.
"""

import json
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.client import ApiClient
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.waiting import wait_until
from e2e.gangs.objects import install_crd

FILE = REPOSITORY / "operator/bayplan/simulate/openapi.json"
OPTIONS = ControlPlaneOptions(feature_gates=("GenericWorkload",), served=("scheduling.k8s.io/v1beta1",))
"""Whoever has a kind that is off by default has files with it as well."""
_KINDS = "x-kubernetes-group-version-kind"
_OF_CRD = "io.x-k8s.scheduling.v1alpha1.PodGroup"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_KEPT = ("type", "format", "enum", "required", "$ref")
_REFERENCE = "#/definitions/"
_QUANTITY = {"$ref": _REFERENCE + "io.k8s.apimachinery.pkg.api.resource.Quantity"}


def published(plane: ControlPlane, read: Collection[tuple[str, str]]) -> str:
    """Returns the document of an API server with `OPTIONS`, once it tells of scheduler-plugins' PodGroup as well."""
    install_crd(plane)

    def is_told() -> bool:
        return _OF_CRD in plane.client.request("GET", "/openapi/v2")["definitions"]

    wait_until(is_told, "the CRD in the OpenAPI document")
    return document(plane.client, read)


def document(client: ApiClient, read: Collection[tuple[str, str]]) -> str:
    """Returns the document with the fields of the kinds that are `read`, by apiVersion and kind, and the names of all.

    Descriptions are left out. It is one definition a line, in order of their names.
    """
    published = client.request("GET", "/openapi/v2")
    definitions = published["definitions"]
    served = {name: list(_served(each)) for name, each in definitions.items()}
    needed = {
        name for name, kinds in served.items() if any((each["apiVersion"], each["kind"]) in read for each in kinds)
    }
    left = list(needed)
    while left:
        found = set(_referred(definitions[left.pop()])) - needed
        needed |= found
        left += found
    lines = []
    for name, kinds in sorted(served.items()):
        cut = {**(_cut(definitions[name]) if name in needed else {}), **({"kinds": kinds} if kinds else {})}
        if cut:
            lines.append(f"{json.dumps(name)}: {json.dumps(cut, sort_keys=True, separators=(',', ':'))}")
    version = json.dumps(published["info"]["version"])
    return f'{{"version": {version}, "definitions": {{\n' + ",\n".join(lines) + "\n}}\n"


def _served(definition: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """The kinds that a definition is for; options of requests are in every group, and are nobody's objects."""
    kinds = definition.get(_KINDS, ())
    if len(kinds) == 1 and "metadata" in definition.get("properties", {}):
        each = kinds[0]
        yield {"apiVersion": "/".join(filter(None, (each["group"], each["version"]))), "kind": each["kind"]}


def _cut(schema: Mapping[str, Any]) -> dict[str, Any]:
    if _INT_OR_STRING in schema:
        # A CRD has no other word for a quantity, and the one that is read has nothing else of that kind.
        return dict(_QUANTITY)
    cut = {key: schema[key] for key in _KEPT if key in schema}
    if "properties" in schema:
        cut["properties"] = {name: _cut(each) for name, each in schema["properties"].items()}
    return cut | {key: _cut(schema[key]) for key in ("items", "additionalProperties") if key in schema}


def _referred(schema: Mapping[str, Any]) -> Iterator[str]:
    if "$ref" in schema:
        yield schema["$ref"].removeprefix(_REFERENCE)
    for each in (
        *schema.get("properties", {}).values(),
        *(schema[key] for key in ("items", "additionalProperties") if key in schema),
    ):
        yield from _referred(each)


def main() -> int:
    """Writes the file anew from an API server that is started for it."""
    from bayplan.simulate.validation import READ  # noqa: PLC0415 - it may be the file that is broken

    with ControlPlane.start(OPTIONS) as plane:
        FILE.write_text(published(plane, READ))
    return 0


if __name__ == "__main__":
    sys.exit(main())
