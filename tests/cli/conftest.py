import io
import sys

import pytest

from bayplan.cli import main


@pytest.fixture(autouse=True)
def _logging_as_it_was(logging_as_it_was):
    """Commands set the whole process's log up."""


@pytest.fixture
def simulate(tmp_path, monkeypatch, capsys):
    """Run the command on files of these contents, by name; `arguments` follow."""

    def simulate(files, *arguments, stdin=b""):
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            main(["simulate", *arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return ended.value.code or 0, captured.out, captured.err

    return simulate
