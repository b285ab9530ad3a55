"""Makes go.mod and go.sum ask for another version of Kubernetes: `make kubernetes VERSION=1.38.0`."""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

from e2e.controlplane.build import cache_root, go_environment, say_on_stderr
from e2e.controlplane.kubernetes_version import GO_MOD, kubernetes_version
from e2e.controlplane.toolchain import ToolchainError, find_go

_FILES = ("go.mod", "go.sum")
_STAGED = re.compile(r"^\s*(k8s\.io/[\w-]+) => \./staging/", re.MULTILINE)


def staging_modules(go_mod: str) -> list[str]:
    """Returns the modules that the go.mod of k8s.io/kubernetes takes from its own tree, in order of their names."""
    return sorted(_STAGED.findall(go_mod))


def with_kubernetes(go_mod: str, before: str, version: str, staging: Collection[str]) -> str:
    """Returns a go.mod that asks for `version` where it asked for `before`.

    Each staging module is replaced by the one published with that version. `go mod tidy` has to do the rest.
    """
    published_before, published = (_published(each) for each in (before, version))

    def require(line: re.Match[str]) -> str:
        return f"{line[1]} v{published}" if line[1].strip() in staging else line[0]

    text = go_mod.replace(f"k8s.io/kubernetes v{before}", f"k8s.io/kubernetes v{version}")
    text = re.sub(rf"^(\s*k8s\.io/[\w-]+) v{re.escape(published_before)}(?=\s)", require, text, flags=re.MULTILINE)
    replaced = "".join(f"\t{each} => {each} v{published}\n" for each in sorted(staging))
    return re.sub(r"^replace \(\n.*?^\)", f"replace (\n{replaced})", text, flags=re.MULTILINE | re.DOTALL)


def change(version: str, folder: Path = GO_MOD.parent) -> None:
    """Changes go.mod and go.sum in `folder`; if that fails, they stay as they are.

    Raises:
        ToolchainError: there is no Go and none can be installed.
        subprocess.CalledProcessError: Go refused, having said why.
    """
    go = find_go(GO_MOD, cache_root() / "go", say_on_stderr)
    with tempfile.TemporaryDirectory(prefix="bayplan-go-mod-") as name:
        scratch = Path(name)
        for each in _FILES:
            shutil.copy(folder / each, scratch)
        for source in folder.rglob("*.go"):  # what they import is asked for as well
            copy = scratch / source.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
        found = json.loads(_go(go, scratch, "mod", "download", "-json", f"k8s.io/kubernetes@v{version}"))
        staging = staging_modules(Path(found["GoMod"]).read_text())
        text = (scratch / "go.mod").read_text()
        before = kubernetes_version(scratch / "go.mod")
        (scratch / "go.mod").write_text(with_kubernetes(text, before, version, staging))
        _go(go, scratch, "mod", "tidy")
        for each in _FILES:
            shutil.copy(scratch / each, folder)


def _published(version: str) -> str:
    """The version under which Kubernetes publishes its staging modules."""
    return f"0.{version.partition('.')[2]}"


def _go(go: Path, folder: Path, *arguments: str) -> str:
    command, environment = [str(go), *arguments], go_environment(go)
    return subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def main() -> int:
    """Changes the version and says what comes next; exit code 1 with one message when it fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version", help="such as 1.38.0", type=lambda given: given.removeprefix("v"))
    version = parser.parse_args().version
    before = kubernetes_version()
    try:
        change(version)
    except (ToolchainError, subprocess.CalledProcessError) as error:
        say_on_stderr(str(error))
        return 1
    print(f"go.mod asks for Kubernetes {version}, before for {before}; CONTRIBUTING.md says what comes next")
    return 0


if __name__ == "__main__":
    sys.exit(main())
