"""Distributions that offer plugins, as files on sys.path: what an installed package looks like to Python."""

import sys
from pathlib import Path


def install(directory: Path, monkeypatch, source: str = "", *, name: str = "outside", **entry_points: str) -> None:
    """Make `source` importable as `<name>_module`, with entry points of bayplan's group given as name=value."""
    info = directory / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    lines = [f"{plugin} = {value}" for plugin, value in entry_points.items()]
    (info / "entry_points.txt").write_text("\n".join(["[bayplan.plugins]", *lines, ""]))
    if source:
        (directory / f"{name}_module.py").write_text(source)
    monkeypatch.syspath_prepend(str(directory))
    monkeypatch.delitem(sys.modules, f"{name}_module", raising=False)
