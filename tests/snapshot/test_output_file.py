import gzip
import os
import stat
import threading

import pytest

from bayplan.snapshot.snapshot import write

PIECES = [b"one ", b"two"]


def failing():
    yield b"one"
    raise RuntimeError("cut")


def test_a_file_is_there_as_a_whole_and_for_its_owner_alone(tmp_path):
    file = tmp_path / "cluster.json"
    write(str(file), PIECES)
    assert file.read_bytes() == b"one two"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["cluster.json"]


def test_a_name_that_ends_in_gz_is_compressed_and_equal_content_gives_equal_bytes(tmp_path):
    first, second = tmp_path / "a.json.gz", tmp_path / "b.json.gz"
    for file in (first, second):
        write(str(file), PIECES)
    assert gzip.decompress(first.read_bytes()) == b"one two"
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("name", ["cluster.json", "cluster.json.gz"])
def test_what_fails_half_way_leaves_what_was_there(tmp_path, name):
    file = tmp_path / name
    file.write_bytes(b"before")
    with pytest.raises(RuntimeError):
        write(str(file), failing())
    assert file.read_bytes() == b"before"
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path):
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_bytes(b"before")
    link.symlink_to(target)
    write(str(link), PIECES)
    assert link.is_symlink()
    assert target.read_bytes() == b"one two"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write(str(pipe), PIECES)
    reader.join()
    assert read == [b"one two"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_directory_is_an_error(tmp_path):
    with pytest.raises(OSError, match="directory"):
        write(str(tmp_path), PIECES)


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        write(str(tmp_path / "none" / "cluster.json"), PIECES)


def test_a_name_as_long_as_names_may_be_is_written(tmp_path):
    write(str(tmp_path / ("x" * 255)), PIECES)
