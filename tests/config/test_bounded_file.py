"""Files that are named to be read, and what only looks like one."""

import os
import pty
import threading
import tty
from pathlib import Path

import pytest

from bayplan.config.document import UnreadableFileError, read_file


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def complaint(path, **options):
    with pytest.raises(UnreadableFileError) as caught:
        read_file(path, 10, **options)
    return str(caught.value)


def test_no_more_than_the_limit_is_read(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"0123456789ab")
    assert read_file(path, 10) == read_file(path, 10, only_regular=True) == b"0123456789"
    assert read_file(path, 100) == b"0123456789ab"
    assert read_file(Path("/dev/zero"), 10) == bytes(10)


def test_a_pipe_that_nobody_writes_to_is_told_at_once(pipe):
    assert complaint(pipe) == "is a pipe that nobody writes to"


def test_a_pipe_is_read_to_its_end(pipe):
    # The reader is there first, so that the writer's open does not wait.
    held = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(pipe, os.O_WRONLY)
    content = bytes(range(256)) * 1000

    def write():
        with os.fdopen(writer, "wb") as file:
            file.write(content)

    thread = threading.Thread(target=write)
    thread.start()
    assert read_file(pipe, 10**6) == content
    thread.join()
    os.close(held)


def test_what_a_writer_left_in_a_pipe_is_read(pipe):
    # As in bash's <(...), where the writer may have ended already.
    reader, writer = os.pipe()
    os.write(writer, b"left")
    os.close(writer)
    assert read_file(Path(f"/dev/fd/{reader}"), 10) == b"left"
    os.close(reader)


def test_a_silent_pipe_is_not_waited_for_for_ever(pipe):
    held = os.open(pipe, os.O_RDWR)
    assert complaint(pipe, wait_seconds=0.01) == "is a pipe that was silent for 0.01 s"
    os.close(held)


def test_a_terminal_may_be_silent_for_as_long_as_people_are():
    controller, terminal = pty.openpty()
    tty.setraw(terminal)
    timer = threading.Timer(0.05, os.write, (controller, b"0123456789"))
    timer.start()
    assert read_file(Path(os.ttyname(terminal)), 10, wait_seconds=0) == b"0123456789"
    timer.join()
    os.close(terminal)
    os.close(controller)


def test_only_a_regular_file_will_do_where_it_must_be_one(pipe):
    for path in (pipe, Path("/dev/zero")):
        assert complaint(path, only_regular=True) == "is no regular file"
    assert complaint(pipe.parent, only_regular=True) == "cannot be read: Is a directory"


@pytest.mark.parametrize(
    ("name", "reason"),
    [("gone", "No such file or directory"), ("a\0b", "embedded null byte"), ("x" * 5000, "File name too long")],
)
def test_what_cannot_be_opened_is_said_with_the_reason(tmp_path, name, reason):
    assert complaint(tmp_path / name) == f"cannot be read: {reason}"
