"""`.ci/at-once` runs targets of make at the same time, and fails if one of them does."""

import shutil
import subprocess
from pathlib import Path

AT_ONCE = Path(__file__).resolve().parents[1] / ".ci" / "at-once"
MAKEFILE = "good:\n\t@echo '....  [ 50%]'\nbad:\n\t@echo what failed; exit 3\n"


def at_once(folder, *targets):
    (folder / ".ci").mkdir()
    (folder / "Makefile").write_text(MAKEFILE)
    program = shutil.copy(AT_ONCE, folder / ".ci")
    return subprocess.run([program, *targets], capture_output=True, text=True, check=False, timeout=60)


def test_it_passes_where_all_do_and_keeps_what_they_printed(tmp_path):
    done = at_once(tmp_path, "good")
    assert (done.returncode, done.stderr) == (0, "")
    assert "=== make good passed after " in done.stdout
    assert (tmp_path / "build" / "at-once" / "good.log").read_text() == "....  [ 50%]\n"


def test_it_fails_where_one_does_after_all_have_ended_and_shows_what_each_printed(tmp_path):
    done = at_once(tmp_path, "bad", "good")
    assert done.returncode == 1
    assert "what failed\n" in done.stdout
    assert "=== make good passed after " in done.stdout
    assert done.stdout.endswith("=== FAILED: make bad\n")
