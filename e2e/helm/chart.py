"""Renders manifests/chart with the real helm, which is built from Go modules once and cached."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.build import Programs, build, say_on_stderr

CHART = REPOSITORY / "manifests" / "chart"
PROGRAM = Programs("helm", "tool", ("helm",), "2 to 10 minutes", module=Path(__file__).parent, kubernetes=False)


def helm(*arguments: str | Path, kubeconfig: Path | None = None, home: Path, check: bool = True) -> str:
    """Runs helm with its files in `home` and returns what it prints.

    Raises:
        RuntimeError: it failed; the message has what it printed. With `check=False` it never does.
    """
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(home)}
    if kubeconfig is not None:
        environment["KUBECONFIG"] = str(kubeconfig)
    done = subprocess.run(
        [build(say_on_stderr, PROGRAM) / "helm", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    if check and done.returncode != 0:
        raise RuntimeError(f"helm {' '.join(map(str, arguments))} exited with {done.returncode}:\n{done.stderr}")
    return done.stdout if check else done.stdout + done.stderr


def template(
    home: Path, values: Mapping[str, Any], *, namespace: str, files: tuple[Path, ...] = ()
) -> list[dict[str, Any]]:
    """Returns the objects of a release called bayplan with values over those of `files` and the chart's own."""
    given = home / "values.yaml"
    given.write_text(yaml.safe_dump(dict(values)))
    options = [f"--values={path}" for path in (*files, given)]
    text = helm("template", "bayplan", CHART, f"--namespace={namespace}", *options, home=home)
    return [each for each in yaml.safe_load_all(text) if each]
