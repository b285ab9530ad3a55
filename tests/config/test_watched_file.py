"""Changes of a file, in all the ways in which files are changed."""

import os

import pytest

from bayplan.config.document import WatchedFile


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "config.yaml"
    made.write_text("one")
    return made


def looks(watched, count=3):
    return [watched.has_changed() for _ in range(count)]


def test_a_file_that_stays_as_it_is_has_not_changed(path):
    watched = WatchedFile(path)
    os.utime(path, (1, 1))
    assert looks(watched) == [False, False, False]


def test_a_change_counts_once_it_was_seen_twice_and_until_it_is_taken(path):
    watched = WatchedFile(path)
    path.write_text("two")
    assert looks(watched) == [False, True, True]
    watched.take()
    assert looks(watched) == [False, False, False]


def test_what_is_half_written_is_not_taken(path):
    watched = WatchedFile(path)
    seen = []
    for part in ("t", "tw", "two"):
        path.write_text(part)
        seen.append(watched.has_changed())
    assert [*seen, watched.has_changed()] == [False, False, False, True]


def test_a_change_that_is_taken_back_at_once_is_none(path):
    watched = WatchedFile(path)
    path.write_text("two")
    assert not watched.has_changed()
    path.write_text("one")
    assert looks(watched) == [False, False, False]


def test_a_folder_that_the_kubelet_swaps_is_a_change(tmp_path):
    for name, text in (("..1", "one"), ("..2", "two"), ("..3", "two")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").write_text(text)
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "config.yaml").symlink_to("..data/config.yaml")

    def swap(name):
        (tmp_path / "..data_tmp").symlink_to(name)
        (tmp_path / "..data_tmp").rename(tmp_path / "..data")

    watched = WatchedFile(tmp_path / "config.yaml")
    swap("..2")
    assert looks(watched, 2) == [False, True]
    watched.take()
    swap("..3")
    assert looks(watched) == [False, False, False], "another folder with the same content"


def test_a_file_that_cannot_be_read_any_more_is_a_change_and_so_is_its_return(path):
    watched = WatchedFile(path)
    path.unlink()
    assert looks(watched, 2) == [False, True]
    watched.take()
    path.write_text("one")
    assert looks(watched, 2) == [False, True]


def test_a_pipe_is_never_read_and_never_changes(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    watched = WatchedFile(tmp_path / "pipe")
    watched.take()
    assert looks(watched) == [False, False, False]


def test_a_file_that_is_not_there_at_the_start_never_changes(tmp_path):
    watched = WatchedFile(tmp_path / "missing")
    assert looks(watched) == [False, False, False]
