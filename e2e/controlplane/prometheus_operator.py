"""The definitions of the Prometheus operator's kinds, from its Go module."""

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from e2e.controlplane.build import MODULE, cache_root, say_on_stderr
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.toolchain import find_go
from e2e.controlplane.waiting import wait_until

_MODULE = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
_KINDS = ("servicemonitors", "podmonitors", "prometheusrules")


@contextlib.contextmanager
def operator_kinds(plane: ControlPlane) -> Iterator[None]:
    """Has an API server, and kubectl, know ServiceMonitor, PodMonitor and PrometheusRule within the block."""
    files = [_folder() / f"monitoring.coreos.com_{kind}.yaml" for kind in _KINDS]
    for path in files:
        # Too large for the annotation of a client-side apply.
        plane.kubectl("apply", "--server-side", "-f", path)
    for kind in _KINDS:
        name = f"crd/{kind}.monitoring.coreos.com"
        plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", name)
    wait_until(lambda: _known(plane) >= set(_KINDS), "the operator's kinds to be published")
    yield
    for path in files:
        plane.kubectl("delete", "-f", path)


def _known(plane: ControlPlane) -> set[str]:
    names = plane.kubectl("api-resources", "--api-group=monitoring.coreos.com", "--output=name", check=False)
    return {name.partition(".")[0] for name in names.splitlines()}


def _folder() -> Path:
    go = find_go(MODULE / "go.mod", cache_root(), say_on_stderr)
    done = subprocess.run(
        [str(go), "mod", "download", "-json", _MODULE],
        cwd=MODULE,
        env={**os.environ, "GOFLAGS": "", "GOWORK": "off", "GOTOOLCHAIN": "local"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{_MODULE} cannot be had:\n{done.stdout}{done.stderr}")
    return Path(json.loads(done.stdout)["Dir"]) / "example" / "prometheus-operator-crd"
