"""Everything in manifests/ is taken by an API server however it is applied: tried out, by kubectl, by a GitOps tool."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml
from e2e.conftest import StartControlPlane
from e2e.controlplane.client import Object
from e2e.controlplane.installation import COMPONENT_NAMES, MANIFESTS, OVERLAYS, kustomize, write_kustomization
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.prometheus_operator import operator_kinds

pytestmark = pytest.mark.controlplane

INSTALLATIONS = (MANIFESTS, *sorted(OVERLAYS.iterdir()), MANIFESTS.parent / "priority")
NEEDS = {
    "admission/warn": ("admission", "admission/warn"),
    "monitoring/pod-monitor": ("monitoring", "monitoring/pod-monitor"),
}
"""The components that have to be named with another."""

ANOTHER = ("--server-side", "--field-manager=a-gitops-tool")


@pytest.fixture(scope="module")
def plane(start_control_plane: StartControlPlane) -> Iterator[ControlPlane]:
    """An API server with the Prometheus operator's kinds, and the namespaces that overlays make.

    In a namespace that is not there nothing can be tried out.
    """
    plane = start_control_plane(ControlPlaneOptions())
    for namespace in sorted(OVERLAYS.glob("*/namespace.yaml")):
        plane.kubectl("apply", "-f", namespace)
    with operator_kinds(plane):
        yield plane


def _apply(plane: ControlPlane, what: Sequence[str | Path], *options: str) -> list[str]:
    """Applies files or a kustomization, and returns what became of each object."""
    return plane.kubectl("apply", "--validate=strict", *options, *what).splitlines()


def _is_taken_however_it_is_applied(plane: ControlPlane, what: Sequence[str | Path], objects: Sequence[Object]) -> None:
    for options in ((), ANOTHER):
        tried = _apply(plane, what, "--dry-run=server", *options)
        assert len([line for line in tried if line.endswith("(server dry run)")]) == len(objects)
    assert len(_apply(plane, what)) == len(objects)
    # Who takes over what kubectl applied is told of no conflict: what the API server fills in is what is there.
    assert len(_apply(plane, what, "--dry-run=server", *ANOTHER)) == len(objects)
    passing = [each for each in objects if each["kind"] != "Namespace"]
    assert len(plane.kubectl("delete", "-f", _rendered(plane, passing)).splitlines()) == len(passing)


def _rendered(plane: ControlPlane, objects: Sequence[Object]) -> Path:
    path = plane.directory / "rendered.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return path


@pytest.mark.parametrize("folder", INSTALLATIONS, ids=lambda folder: folder.name)
def test_an_installation_is_taken_however_it_is_applied(plane: ControlPlane, folder: Path) -> None:
    _is_taken_however_it_is_applied(plane, ("-k", folder), kustomize(plane, folder))


@pytest.fixture(scope="module")
def base(plane: ControlPlane) -> list[Object]:
    """What is in every installation, which is applied above."""
    return kustomize(plane, MANIFESTS)


@pytest.mark.parametrize("name", sorted(COMPONENT_NAMES))
def test_what_a_component_adds_or_changes_is_taken_however_it_is_applied(
    plane: ControlPlane, base: list[Object], tmp_path: Path, name: str
) -> None:
    write_kustomization(tmp_path, components=NEEDS.get(name, (name,)))
    own = [each for each in kustomize(plane, tmp_path) if each not in base]
    assert own
    _is_taken_however_it_is_applied(plane, ("-f", _rendered(plane, own)), own)
