"""Builds the API server of another version of Kubernetes from Go modules."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

from e2e.controlplane.build import Programs, build, cache_root, go_environment, say_on_stderr
from e2e.controlplane.change_kubernetes import staging_modules
from e2e.controlplane.kubernetes_version import GO_MOD
from e2e.controlplane.toolchain import find_go

VERSIONS = ("1.33.13", "1.34.4", "1.35.4", "1.36.3", "1.37.1")
"""One patch release of each minor version that is served; the last is the one that all other tests run on."""

_PROGRAM = "kube-apiserver"


def build_api_server(version: str) -> Path:
    """Returns a folder with kube-apiserver of a version and with etcd, building what is not cached.

    KUBEBUILDER_ASSETS with this folder has a control plane start with it.

    Raises:
        BuildError, ToolchainError: it could not be built.
        subprocess.CalledProcessError: Go could not resolve its modules, having said why.
    """
    module = _module(version)
    programs = Programs(_PROGRAM, "tool", (_PROGRAM,), "4 to 20 minutes", module=module)
    built = build(say_on_stderr, programs)
    assets = module / "assets"
    assets.mkdir(exist_ok=True)
    for name, path in ((_PROGRAM, built / _PROGRAM), ("etcd", build(say_on_stderr) / "etcd")):
        link = assets / name
        link.unlink(missing_ok=True)
        link.symlink_to(path)
    return assets


def go_mod(version: str, staging: list[str]) -> str:
    """Returns the text of a module whose one tool is kube-apiserver of a version."""
    published = f"0.{version.partition('.')[2]}"
    replaced = "".join(f"\t{each} => {each} v{published}\n" for each in staging)
    go = next(line for line in GO_MOD.read_text().splitlines() if line.startswith("go "))
    return (
        f"module bayplan.io/e2e/compatibility\n\n{go}\n\ntool k8s.io/kubernetes/cmd/{_PROGRAM}\n\n"
        f"require k8s.io/kubernetes v{version}\n\nreplace (\n{replaced})\n"
    )


def _module(version: str) -> Path:
    """A folder in the cache with a complete go.mod and go.sum; the module itself fixes every version in them."""
    folder = cache_root() / "compatibility" / version
    go = find_go(GO_MOD, cache_root() / "go", say_on_stderr)
    folder.mkdir(parents=True, exist_ok=True)
    found = json.loads(_go(go, folder, "mod", "download", "-json", f"k8s.io/kubernetes@v{version}"))
    wanted = go_mod(version, staging_modules(Path(found["GoMod"]).read_text()))
    digest, known = hashlib.sha256(wanted.encode()).hexdigest(), folder / "complete"
    if not known.exists() or known.read_text() != digest:
        (folder / "go.mod").write_text(wanted)
        _go(go, folder, "mod", "tidy")
        known.write_text(digest)
    return folder


def _go(go: Path, folder: Path, *arguments: str) -> str:
    command = [str(go), *arguments]
    done = subprocess.run(
        command, cwd=folder, env=go_environment(go), stdout=subprocess.PIPE, stderr=sys.stderr, text=True, check=True
    )
    return done.stdout
