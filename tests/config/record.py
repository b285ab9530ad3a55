"""Records what kube-scheduler says of its own configuration: `python -m tests.config.record`.

Needs the kube-scheduler that `make controlplane` builds; test_kube_scheduler.py holds bayplan against the files.
"""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from e2e.controlplane.build import binary

from bayplan.config.feature_gates import KNOWN_FEATURE_GATES

DATA = Path(__file__).parent / "data"
WRITTEN = "kube-scheduler.yaml"
"""What `--write-config-to` writes when there is no `--config`."""
GATES = "feature-gates.txt"
"""A line for each gate that is not stable yet, with stage and default, and for each that is LOCKED to its default."""
FLAGS = "flags.txt"
"""The name of each flag, a line each."""

# Never asked: it stops before.
_KUBECONFIG = """
{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],
clusters: [{name: a, cluster: {server: "http://127.0.0.1:1"}}], users: [{name: a, user: {}}]}
"""


def kube_scheduler(directory: Path, arguments: Sequence[str]) -> str:
    """Runs it in `directory` until it ends, and returns what it says."""
    (directory / "kubeconfig").write_text(_KUBECONFIG)
    common = ["--kubeconfig=kubeconfig", "--authentication-skip-lookup", f"--write-config-to={WRITTEN}"]
    command = [str(binary("kube-scheduler")), *common, *arguments]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def flags_in(helped: str) -> set[str]:
    """The flags that a help text of kube-scheduler describes, with their dashes."""
    return set(re.findall(r"^ +(?:-\w, )?(--[a-z0-9-]+) ", helped, re.MULTILINE))


def record(data: Path) -> None:
    """Writes all files."""
    data.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        directory = Path(folder)
        kube_scheduler(directory, [])
        written = (directory / WRITTEN).read_text()
        helped = kube_scheduler(directory, ["--help"])
        shown = re.findall(r"kube:(\w+)=true\|false \((\w+) - default=(\w+)\)", helped)
        # It names no gate that is stable or deprecated, but refuses to change those that are locked.
        other = ",".join(f"{name}={str(not spec.default).lower()}" for name, spec in KNOWN_FEATURE_GATES.items())
        answer = kube_scheduler(directory, [f"--feature-gates={other}"])
        refused = re.findall(r"cannot set feature gate (\w+) to \w+, feature is locked to (\w+)", answer)
        unknown = re.findall(r"unrecognized feature gate: (\w+)", answer)
    if unknown or not refused:
        raise SystemExit(f"config/known_feature_gates.json names gates that it does not know: {unknown or answer}")
    (data / WRITTEN).write_text(written)
    (data / FLAGS).write_text("".join(f"{name}\n" for name in sorted(flags_in(helped))))
    gates = sorted([*shown, *((name, "LOCKED", default) for name, default in refused)])
    (data / GATES).write_text("".join(f"{name} {stage} {default}\n" for name, stage, default in gates))


if __name__ == "__main__":
    record(DATA)
    sys.exit(0)
